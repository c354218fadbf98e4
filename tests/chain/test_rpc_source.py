"""A node as a source of blocks: which methods suffice, what it may refuse, and bytes rebuilt from its JSON."""

import pytest

from proofcast.chain.io.fetch import fetch_block, fetch_blocks, link_range
from proofcast.chain.io.rebuild import rebuild_header, rebuild_receipt, rebuild_transaction
from proofcast.chain.io.rpc_source import RpcSource
from proofcast.chain.profile import get_profile
from proofcast.chain.segment import BlockId
from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.event import Finality
from proofcast.testing.chain import ChainSimulator, JsonValue, ScriptedNode, SimulatedNode, error
from proofcast.testing.chain.node import RAW_METHODS, STANDARD_METHODS, Params

PROFILE = get_profile(31_337)
SEED, LENGTH = 11, 40


@pytest.fixture(scope="module")
def chain() -> ChainSimulator:
    chain = ChainSimulator(SEED)
    chain.mine(LENGTH)
    return chain


def read_hashes(source: RpcSource) -> list[bytes]:
    segments = link_range(source, 1, LENGTH, length=16)
    return [block.hash for segment in segments for block in fetch_blocks(source, segment, PROFILE)]


def get_hashes(chain: ChainSimulator) -> list[bytes]:
    return [block.hash for block in chain.canonical[1:]]


# --- refusals


def test_range_that_runs_backwards_is_refused(chain: ChainSimulator) -> None:
    with SimulatedNode(chain) as node, pytest.raises(InvalidRequest, match="no blocks from `5` to `4`"):
        link_range(RpcSource(node.url), 5, 4, length=1)


def test_checkpoint_far_from_the_range_is_refused(chain: ChainSimulator) -> None:
    with SimulatedNode(chain) as node, pytest.raises(InvalidRequest, match="is not near the blocks"):
        link_range(RpcSource(node.url), 10, 12, length=1, checkpoint=chain.canonical[0].id)


def test_other_checkpoint_is_refused(chain: ChainSimulator) -> None:
    with SimulatedNode(chain) as node, pytest.raises(InvalidInput, match="the hash of block `12` is"):
        link_range(RpcSource(node.url), 10, 12, length=1, checkpoint=BlockId(12, bytes(32)))


def test_block_beyond_the_head_is_not_there_yet(chain: ChainSimulator) -> None:
    with SimulatedNode(chain) as node, pytest.raises(Unavailable) as refused:
        RpcSource(node.url, pause_s=0).get_headers(LENGTH, LENGTH + 1)
    assert refused.value.reason is Reason.NOT_YET


def test_transaction_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match="transaction of a known type"):
        rebuild_transaction({"type": "0x55"})


def test_header_without_a_field_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`parentHash`"):
        rebuild_header({"number": "0x1"})


def test_receipt_without_outcome_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`root`"):
        rebuild_receipt({"type": "0x0"})


# --- methods


def test_standard_rpc_methods_suffice(chain: ChainSimulator) -> None:
    """O7 of the notes: Decentagram's broker needs geth's `debug_getRawHeader` and `debug_getRawReceipts`."""
    with SimulatedNode(chain, STANDARD_METHODS) as node:
        assert read_hashes(RpcSource(node.url)) == get_hashes(chain)
        assert node.asked.count("debug_getRawReceipts") <= 32, "it is not tried again and again"


def test_receipts_are_read_one_by_one_where_nothing_better_is_served(chain: ChainSimulator) -> None:
    with SimulatedNode(chain, STANDARD_METHODS - {"eth_getBlockReceipts"}) as node:
        assert read_hashes(RpcSource(node.url)) == get_hashes(chain)


def test_raw_receipts_are_used_where_served(chain: ChainSimulator) -> None:
    with SimulatedNode(chain, STANDARD_METHODS | RAW_METHODS) as node:
        assert read_hashes(RpcSource(node.url)) == get_hashes(chain)
    assert "eth_getBlockReceipts" not in node.asked


class FutureNode(SimulatedNode):
    """Serves headers with a field that our JSON reader does not know."""

    def call(self, method: str, params: Params) -> JsonValue:
        answer = super().call(method, params)
        if method.startswith("eth_getBlockBy") and isinstance(answer, dict):
            answer.pop("requestsHash")
        return answer


def test_header_of_a_fork_to_come_is_read_raw(chain: ChainSimulator) -> None:
    with FutureNode(chain, STANDARD_METHODS | RAW_METHODS) as node:
        assert fetch_block(RpcSource(node.url), chain.head.hash, PROFILE).hash == chain.head.hash


def test_header_of_a_fork_to_come_is_refused_where_only_json_is_served(chain: ChainSimulator) -> None:
    with FutureNode(chain) as node, pytest.raises(InvalidInput, match=f"the hash of block `{LENGTH}` is"):
        fetch_block(RpcSource(node.url), chain.head.hash, PROFILE)


def test_transactions_are_rebuilt(chain: ChainSimulator) -> None:
    with SimulatedNode(chain) as node:
        blocks = RpcSource(node.url).get_blocks(1, LENGTH, with_receipts=False, with_transactions=True)
    assert [block.transactions for block in blocks] == [block.raw.transactions for block in chain.canonical[1:]]
    assert {block.receipts for block in blocks} == {None}


# --- moods


@pytest.mark.parametrize("batch_max", [1, 3, 32])
def test_smaller_batches_are_sent_where_the_node_refuses_large_ones(chain: ChainSimulator, batch_max: int) -> None:
    with SimulatedNode(chain, batch_max=batch_max) as node:
        assert read_hashes(RpcSource(node.url)) == get_hashes(chain)


class HesitantNode(SimulatedNode):
    """Knows a block before it knows the receipts."""

    hesitations = 2

    def call(self, method: str, params: Params) -> JsonValue:
        if method == "eth_getBlockReceipts" and self.hesitations:
            self.hesitations -= 1
            return None
        return super().call(method, params)


def test_null_receipts_just_after_the_head_are_asked_for_again(chain: ChainSimulator) -> None:
    with HesitantNode(chain) as node:
        assert fetch_block(RpcSource(node.url, pause_s=0), chain.head.hash, PROFILE).columns
    assert node.asked.count("eth_getBlockReceipts") == 3


def test_tag_that_a_node_does_not_know_is_no_answer(chain: ChainSimulator) -> None:
    with ScriptedNode([error(-32602, "unknown block tag")]) as node:
        assert RpcSource(node.url).get_head(Finality.SAFE) is None


def test_orphaned_block_is_found_by_its_hash() -> None:
    chain = ChainSimulator(SEED)
    orphan = chain.mine(3)[-1]
    chain.reorg(2)
    with SimulatedNode(chain) as node:
        assert fetch_block(RpcSource(node.url), orphan.hash, PROFILE).header == orphan.header

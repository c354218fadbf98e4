"""One test per lie: a node that lies is refused, and the reason says what disagreed."""

from dataclasses import replace

import pytest

from proofcast.chain.io.fetch import fetch_blocks, link_range
from proofcast.chain.io.rpc_source import RpcSource
from proofcast.chain.profile import Blooms, get_profile
from proofcast.chain.verify import VerifiedBlock, verify_block
from proofcast.errors import InvalidInput, ProofcastError, Reason, Unavailable
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.bloom import LogFilter
from proofcast.ethereum.header import Header, encode_header
from proofcast.ethereum.receipt import encode_receipt
from proofcast.ethereum.trie import compute_ordered_root
from proofcast.testing.chain import ChainSimulator, Lie, LyingNode

SEED, LENGTH = 7, 6
PROFILE = get_profile(31_337)


@pytest.fixture(scope="module")
def chain() -> ChainSimulator:
    chain = ChainSimulator(SEED)
    chain.mine(LENGTH)
    return chain


TRANSACTION_LIES = frozenset({Lie.TAMPER_TRANSACTION, Lie.WITHHOLD_TRANSACTION})


def read_all(chain: ChainSimulator, lie: Lie) -> list[VerifiedBlock]:
    """All blocks of a node, by way of one who knows the hash of the head."""
    other = ChainSimulator(SEED + 1)
    other.mine(LENGTH + 1)
    with LyingNode(chain, lie, other=other) as node:
        source = RpcSource(node.url, pause_s=0)
        segments = link_range(source, 1, LENGTH, length=3, checkpoint=chain.head.id)
        return [
            block
            for segment in segments
            for block in fetch_blocks(source, segment, PROFILE, with_transactions=lie in TRANSACTION_LIES)
        ]


def refuse(chain: ChainSimulator, lie: Lie) -> ProofcastError:
    with pytest.raises(ProofcastError) as refused:
        read_all(chain, lie)
    return refused.value


def verify_root_refused(error: ProofcastError, chain: ChainSimulator, number: int = 1) -> None:
    """The message names the block, the root that the receipts have, and the one in the header."""
    assert isinstance(error, InvalidInput)
    assert error.reason is Reason.DISAGREES
    assert f"block `{number}`" in str(error)
    assert f"instead of the header's `{chain.canonical[number].header.receipts_root.hex()}`" in str(error)


# --- receipts


def test_tampered_log_is_refused(chain: ChainSimulator) -> None:
    verify_root_refused(refuse(chain, Lie.TAMPER_DATA), chain)


def test_tampered_status_is_refused(chain: ChainSimulator) -> None:
    verify_root_refused(refuse(chain, Lie.TAMPER_STATUS), chain)


def test_withheld_log_is_refused(chain: ChainSimulator) -> None:
    verify_root_refused(refuse(chain, Lie.WITHHOLD_LOG), chain)


def test_withheld_log_with_its_bloom_is_refused(chain: ChainSimulator) -> None:
    verify_root_refused(refuse(chain, Lie.WITHHOLD_LOG_AND_BLOOM), chain)


def test_made_up_log_is_refused(chain: ChainSimulator) -> None:
    verify_root_refused(refuse(chain, Lie.ADD_LOG), chain)


def test_withheld_receipt_is_refused(chain: ChainSimulator) -> None:
    verify_root_refused(refuse(chain, Lie.WITHHOLD_RECEIPT), chain)


def test_repeated_receipt_is_refused(chain: ChainSimulator) -> None:
    verify_root_refused(refuse(chain, Lie.REPEAT_RECEIPT), chain)


def test_reordered_receipts_are_refused(chain: ChainSimulator) -> None:
    assert len(chain.canonical[1].receipts) > 1, f"seed {SEED} makes the lie true"
    verify_root_refused(refuse(chain, Lie.REORDER_RECEIPTS), chain)


def test_reordered_logs_are_refused(chain: ChainSimulator) -> None:
    verify_root_refused(refuse(chain, Lie.REORDER_LOGS), chain)


def test_truncated_receipts_are_refused(chain: ChainSimulator) -> None:
    error = refuse(chain, Lie.TRUNCATE)
    verify_root_refused(error, chain)
    assert "the `0` receipts" in str(error)


def test_receipts_that_never_come_are_waited_for(chain: ChainSimulator) -> None:
    error = refuse(chain, Lie.NULL)
    assert isinstance(error, Unavailable)
    assert error.reason is Reason.NOT_YET
    assert "`eth_getBlockReceipts`" in str(error)


def test_receipts_of_another_block_are_refused(chain: ChainSimulator) -> None:
    verify_root_refused(refuse(chain, Lie.OTHER_RECEIPTS), chain)


def test_nonsense_is_refused(chain: ChainSimulator) -> None:
    error = refuse(chain, Lie.NONSENSE)
    assert isinstance(error, InvalidInput)
    assert "`7` for a list of logs" in str(error)


# --- transactions


def test_tampered_transaction_is_refused(chain: ChainSimulator) -> None:
    error = refuse(chain, Lie.TAMPER_TRANSACTION)
    assert "the transactions root of block `1` is" in str(error)
    assert chain.canonical[1].header.transactions_root.hex() in str(error)


def test_withheld_transaction_is_refused(chain: ChainSimulator) -> None:
    assert "the transactions root of block `1` is" in str(refuse(chain, Lie.WITHHOLD_TRANSACTION))


def test_fewer_receipts_than_transactions_are_refused(chain: ChainSimulator) -> None:
    block = chain.canonical[1]
    header = replace(block.header, receipts_root=compute_ordered_root(()), logs_bloom=bytes(256), gas_used=0)
    with pytest.raises(InvalidInput, match=r"has `0` receipts of `\d` transactions"):
        verify_block(RawBlock(encode_header(header), block.raw.transactions, ()), PROFILE)


# --- headers


def test_tampered_header_is_refused(chain: ChainSimulator) -> None:
    error = refuse(chain, Lie.TAMPER_HEADER)
    assert isinstance(error, InvalidInput)
    assert "names the parent" in str(error)


def test_emptied_bloom_is_refused(chain: ChainSimulator) -> None:
    """Else a reader who asks for some logs only would be told that there are none."""
    assert isinstance(refuse(chain, Lie.EMPTY_BLOOM), InvalidInput)


def test_other_chain_is_refused(chain: ChainSimulator) -> None:
    error = refuse(chain, Lie.OTHER_CHAIN)
    assert f"the hash of block `{LENGTH}` is" in str(error)
    assert chain.head.hash.hex() in str(error)


def test_shifted_numbers_are_refused(chain: ChainSimulator) -> None:
    assert "block `2` came where `1` was asked for" in str(refuse(chain, Lie.SHIFT_NUMBERS))


def test_mixed_branches_are_refused(chain: ChainSimulator) -> None:
    assert "names the parent" in str(refuse(chain, Lie.MIX_BRANCHES))


# --- blocks that contradict themselves, under a hash that fits


def verify_made_up(chain: ChainSimulator, header: Header) -> VerifiedBlock:
    return verify_block(RawBlock(encode_header(header), None, chain.head.raw.receipts), PROFILE)


def test_empty_bloom_over_logs_is_refused(chain: ChainSimulator) -> None:
    with pytest.raises(InvalidInput, match="receipts together are not the header's"):
        verify_made_up(chain, replace(chain.head.header, logs_bloom=bytes(256)))


def test_fuller_bloom_than_the_logs_is_refused(chain: ChainSimulator) -> None:
    with pytest.raises(InvalidInput, match="receipts together are not the header's"):
        verify_made_up(chain, replace(chain.head.header, logs_bloom=b"\xff" * 256))


def test_receipt_that_contradicts_its_bloom_is_refused(chain: ChainSimulator) -> None:
    receipts = tuple(encode_receipt(replace(receipt, logs_bloom=bytes(256))) for receipt in chain.head.receipts)
    header = replace(chain.head.header, receipts_root=compute_ordered_root(receipts), logs_bloom=bytes(256))
    with pytest.raises(InvalidInput, match="the bloom of receipt `0` is not that of its"):
        verify_block(RawBlock(encode_header(header), None, receipts), PROFILE)


def test_blooms_are_not_looked_at_where_the_chain_has_none(chain: ChainSimulator) -> None:
    header = replace(chain.head.header, logs_bloom=bytes(256))
    profile = replace(PROFILE, blooms=Blooms.NONE)
    block = verify_block(RawBlock(encode_header(header), None, chain.head.raw.receipts), profile)
    assert block.columns
    assert block.columns.logs == len(chain.head.logs)


def test_other_gas_than_the_header_says_is_refused(chain: ChainSimulator) -> None:
    with pytest.raises(InvalidInput, match=r"used `\d+` gas, its header says `1`"):
        verify_made_up(chain, replace(chain.head.header, gas_used=1))


def test_falling_gas_is_refused(chain: ChainSimulator) -> None:
    first, *rest = chain.canonical[1].receipts
    receipts = tuple(map(encode_receipt, (replace(first, cumulative_gas=10**6), *rest)))
    header = replace(chain.canonical[1].header, receipts_root=compute_ordered_root(receipts))
    with pytest.raises(InvalidInput, match="the gas used falls from `1000000`"):
        verify_block(RawBlock(encode_header(header), None, receipts), PROFILE)


# --- the truth


def test_truth_is_accepted(chain: ChainSimulator) -> None:
    blocks = read_all(chain, Lie.REWRITE_FINALITY)  # which nobody asks about here
    assert [block.hash for block in blocks] == [block.hash for block in chain.canonical[1:]]
    assert [block.raw.receipts for block in blocks] == [block.raw.receipts for block in chain.canonical[1:]]


def test_receipts_are_fetched_only_where_the_bloom_may_match(chain: ChainSimulator) -> None:
    wanted = LogFilter(frozenset({chain.canonical[2].logs[0].address}), ())
    with LyingNode(chain, Lie.REWRITE_FINALITY) as node:
        source = RpcSource(node.url, pause_s=0)
        (segment,) = link_range(source, 1, LENGTH, length=LENGTH)
        blocks = list(fetch_blocks(source, segment, PROFILE, wanted))
    fetched = {block.header.number for block in blocks if block.columns}
    holding = {block.header.number for block in chain.canonical if any(wanted.matches(log) for log in block.logs)}
    assert holding <= fetched < set(range(1, LENGTH + 1))
    assert len(blocks) == LENGTH

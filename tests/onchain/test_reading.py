"""Reading the chain: wrong networks and lying nodes are refused; logs are found from the contract's first block."""

import pytest

from proofcast.chain.io.answers import parse_quantity
from proofcast.chain.io.rpc import RpcClient
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.onchain import lens, topics
from proofcast.onchain.events import TopicCreated
from proofcast.onchain.io import reading
from proofcast.onchain.io.artefacts import get_contracts, load_artefact
from proofcast.onchain.io.reading import (
    encode_hex,
    find_creation_block,
    find_logs,
    read,
    read_all,
    require_chain,
    require_contract,
)
from proofcast.onchain.io.receipts import parse_log, parse_receipt
from proofcast.onchain.request import ask
from proofcast.testing.chain import ScriptedNode, error, result
from proofcast.testing.onchain import Playground

ADDRESS = b"\x11" * 20


# --- refusals


@pytest.mark.parametrize("receipt", [None, [], {}, {"status": "0x1"}, "0x1"])
def test_receipt_that_is_none(receipt: object) -> None:
    with pytest.raises(InvalidInput, match="for a receipt") as raised:
        parse_receipt(receipt, 1)
    assert raised.value.reason is Reason.MALFORMED


@pytest.mark.parametrize("log", [None, {}, {"address": "0x00"}, {"address": 5}])
def test_log_that_is_none(log: object) -> None:
    with pytest.raises(InvalidInput, match="the node sent"):
        parse_log(log, 1)


@pytest.mark.parametrize("number", [None, "x", [], 5])
def test_number_that_is_none(number: object) -> None:
    with pytest.raises(InvalidInput, match="for a number"):
        parse_quantity(number)


def test_other_chain_is_refused() -> None:
    with ScriptedNode([result("0x5")]) as node, RpcClient(node.url) as rpc, pytest.raises(InvalidRequest) as raised:
        require_chain(rpc, 1)
    assert "is on chain `5` but `1` was asked for" in str(raised.value)
    assert (raised.value.reason, raised.value.have, raised.value.need) == (Reason.WRONG_NETWORK, 5, 1)


def test_chain_without_the_contract_is_refused() -> None:
    with (
        ScriptedNode([result("0x"), result("0x5")]) as node,
        RpcClient(node.url) as rpc,
        pytest.raises(InvalidRequest, match=r"there is no `Topics` at `0x11.*` on chain `5`") as raised,
    ):
        require_contract(rpc, ADDRESS, "Topics")
    assert raised.value.reason is Reason.WRONG_NETWORK


def test_view_that_answers_nonsense_is_refused() -> None:
    with (
        ScriptedNode([result("0x1234")]) as node,
        RpcClient(node.url) as rpc,
        pytest.raises(InvalidInput, match="`2` bytes from the chain do not decode"),
    ):
        read(rpc, ADDRESS, lens.get_topic(bytes(32)))


def test_log_query_that_fails_for_one_block_is_refused() -> None:
    script = [result("0x1"), error(-32000, "too large"), error(-32000, "too large")]
    with ScriptedNode(script) as node, RpcClient(node.url) as rpc:
        rpc.call("eth_chainId")
        with pytest.raises(InvalidRequest, match="too large"):
            reading.query_logs(rpc, ADDRESS, [], 0, 1)


# --- successes


def test_log_query_is_halved_until_the_node_likes_it() -> None:
    script = [error(-32000, "too large"), result([]), error(-32000, "too large"), result([1]), result([2])]
    with ScriptedNode(script) as node, RpcClient(node.url) as rpc:
        assert reading.query_logs(rpc, ADDRESS, [], 0, 3) == [1, 2]
    ranges = [(asked["params"][0]["fromBlock"], asked["params"][0]["toBlock"]) for asked in node.asked]  # type: ignore[index,call-overload]
    assert ranges == [("0x0", "0x3"), ("0x0", "0x1"), ("0x2", "0x3"), ("0x2", "0x2"), ("0x3", "0x3")]


def test_node_without_old_state_means_the_first_block() -> None:
    with ScriptedNode([result("0x64"), error(-32000, "missing trie node")]) as node, RpcClient(node.url) as rpc:
        assert find_creation_block(rpc, ADDRESS) == 0


@pytest.mark.needs("anvil")
def test_contract_is_where_its_code_says(playground: Playground) -> None:
    code = playground.rpc.call("eth_getCode", encode_hex(get_contracts().topics), "latest")
    assert code == encode_hex(load_artefact("Topics").runtime_code)
    assert playground.topics == get_contracts().topics


@pytest.mark.needs("anvil")
def test_creation_block_is_found(playground: Playground) -> None:
    playground.rpc.call("anvil_mine", hex(1_000))
    first = find_creation_block(playground.rpc, playground.topics)
    assert playground.rpc.call("eth_getCode", encode_hex(playground.topics), hex(first)) != "0x"
    assert playground.rpc.call("eth_getCode", encode_hex(playground.topics), hex(first - 1)) == "0x"


@pytest.mark.needs("anvil")
def test_logs_are_found_over_several_queries(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCKS_PER_QUERY_MAX", 3)
    names = [f"topic {i}" for i in range(5)]
    for name in names:
        playground.send(ask(playground.topics, topics.create(name)))
        playground.rpc.call("anvil_mine", hex(2))
    found = list(find_logs(playground.rpc, playground.topics, TopicCreated, first=0))
    assert [logged.event.name for logged in found if isinstance(logged.event, TopicCreated)] == names
    blocks = [logged.position.block_number for logged in found]
    assert blocks == sorted(blocks)


@pytest.mark.needs("anvil")
def test_index_order_is_the_contracts(playground: Playground) -> None:
    places = [(sequence, position, end) for sequence in (1, 2, 7) for end in (1, 8, 9, 33) for position in range(end)]
    theirs = read_all(playground.rpc, playground.lens, [lens.index_at(*place) for place in places])
    assert theirs == [lens.compute_index(*place) for place in places]
    assert len(places) > reading.BATCH_MAX

"""The JSON-RPC client against nodes that are dead, busy, lying or honest; all of them over real HTTP."""

import socket

import pytest

from proofcast.chain.io.rpc import ATTEMPTS_MAX, NodeRefused, RpcClient
from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.testing.chain import Answer, JsonValue, ScriptedNode, encode, error, plainly, result

BUSY = plainly(Answer(b"busy", status=503))
TOO_MANY = plainly(Answer(b"slow down", status=429))
HANGS_UP = plainly(Answer(None))


def get_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


# --- refusals


def test_dead_node_is_unavailable_and_its_secret_path_is_not_shown() -> None:
    with (
        RpcClient(f"http://127.0.0.1:{get_free_port()}/v3/secret-access-key") as rpc,
        pytest.raises(Unavailable, match="did not answer") as raised,
    ):
        rpc.call("eth_chainId")
    assert raised.value.reason is Reason.NO_ANSWER
    assert "secret" not in str(raised.value) + raised.value.hint
    assert rpc.host in str(raised.value)


@pytest.mark.parametrize("trouble", [BUSY, TOO_MANY, HANGS_UP, error(-32005, "limit exceeded")])
def test_read_is_repeated_and_then_given_up(trouble: type) -> None:
    with ScriptedNode([trouble] * ATTEMPTS_MAX) as node, RpcClient(node.url) as rpc, pytest.raises(Unavailable):
        rpc.call("eth_chainId")
    assert len(node.asked) == ATTEMPTS_MAX


@pytest.mark.parametrize("trouble", [BUSY, TOO_MANY, HANGS_UP])
def test_transaction_is_sent_once_only(trouble: type) -> None:
    with ScriptedNode([trouble, result("0x00")]) as node, RpcClient(node.url) as rpc, pytest.raises(Unavailable):
        rpc.call("eth_sendRawTransaction", "0x00")
    assert len(node.asked) == 1


def test_batch_with_a_transaction_is_sent_once_only() -> None:
    with ScriptedNode([BUSY, BUSY]) as node, RpcClient(node.url) as rpc, pytest.raises(Unavailable):
        rpc.batch([("eth_chainId", []), ("eth_sendRawTransaction", ["0x00"])])
    assert len(node.asked) == 1


@pytest.mark.parametrize(
    "body", [b"<html>", b"[1]", b'"x"', b'{"jsonrpc":"2.0","id":999999,"result":"0x1"}', b'{"id":1}', b"[]"]
)
def test_answer_that_is_no_json_rpc_is_refused(body: bytes) -> None:
    with (
        ScriptedNode([plainly(Answer(body))]) as node,
        RpcClient(node.url) as rpc,
        pytest.raises(InvalidInput, match="answered with") as raised,
    ):
        rpc.call("eth_chainId")
    assert raised.value.reason is Reason.MALFORMED


@pytest.mark.parametrize("data", ["0xdeadbeef", {"data": "0xdeadbeef"}, "Reverted 0xdeadbeef"])
def test_revert_data_is_kept_wherever_nodes_put_it(data: JsonValue) -> None:
    with (
        ScriptedNode([error(3, "execution reverted", data)]) as node,
        RpcClient(node.url) as rpc,
        pytest.raises(NodeRefused, match="execution reverted") as raised,
    ):
        rpc.call("eth_call", {}, "latest")
    assert (raised.value.code, raised.value.data, raised.value.reason) == (3, b"\xde\xad\xbe\xef", Reason.REVERTED)


@pytest.mark.parametrize("data", [None, 7, "no hex", {"data": None}])
def test_refusal_without_revert_data(data: JsonValue) -> None:
    with (
        ScriptedNode([error(-32602, "bad params" + "x" * 1000, data)]) as node,
        RpcClient(node.url) as rpc,
        pytest.raises(NodeRefused) as raised,
    ):
        rpc.call("eth_call", {}, "latest")
    assert raised.value.data == b""
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("url", ["", "localhost:8545", "ftp://x", "http://", "http://[", "http://x:notaport"])
def test_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidRequest, match="no `http://` or `https://` address"):
        RpcClient(url)


# --- successes


def test_read_succeeds_when_the_node_recovers() -> None:
    with ScriptedNode([BUSY, HANGS_UP, result("0x1")]) as node, RpcClient(node.url) as rpc:
        assert rpc.call("eth_chainId") == "0x1"


def test_batch_is_put_in_order() -> None:
    def answer_backwards(request: JsonValue) -> Answer:
        assert isinstance(request, list)
        answers: list[JsonValue] = [
            {"jsonrpc": "2.0", "id": call["id"], "result": call["method"]}
            for call in reversed(request)
            if isinstance(call, dict)
        ]
        return encode(answers)

    with ScriptedNode([answer_backwards]) as node, RpcClient(node.url) as rpc:
        assert rpc.batch([("eth_chainId", []), ("eth_blockNumber", [])]) == ["eth_chainId", "eth_blockNumber"]


def test_empty_batch_asks_nobody() -> None:
    with ScriptedNode([]) as node, RpcClient(node.url) as rpc:
        assert rpc.batch([]) == []
    assert node.asked == []


def test_null_is_a_result() -> None:
    with ScriptedNode([result(None)]) as node, RpcClient(node.url) as rpc:
        assert rpc.call("eth_getTransactionReceipt", "0x00") is None

"""Reading our contracts from a node: views, logs, and the block a contract was created in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from proofcast.chain.io.answers import parse_bytes, parse_quantity
from proofcast.chain.io.rpc import Json, NodeRefused, RpcClient
from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Position
from proofcast.onchain.abi import Call, format_value
from proofcast.onchain.events import PayloadTypeChanged, TopicsEvent, compute_type_hash, find_event
from proofcast.onchain.io.receipts import Log, parse_log
from proofcast.onchain.reverts import decode_revert

Result = TypeVar("Result")

BLOCKS_PER_QUERY_MAX = 10_000
"""What public nodes commonly allow for one `eth_getLogs`."""
BATCH_MAX = 100
"""Calls per request; nodes commonly allow that many."""


@dataclass(frozen=True, slots=True)
class Logged:
    """An event and where it is."""

    event: TopicsEvent
    transaction_hash: bytes
    position: Position


def encode_hex(data: bytes) -> str:
    return "0x" + data.hex()


def read(rpc: RpcClient, contract: bytes, call: Call[Result]) -> Result:
    """What a view returns; a revert becomes the error it stands for."""
    (result,) = read_all(rpc, contract, [call])
    return result


def read_all(rpc: RpcClient, contract: bytes, calls: Sequence[Call[Result]]) -> list[Result]:
    """What several views return, in few requests."""
    results: list[Result] = []
    for start in range(0, len(calls), BATCH_MAX):
        page = calls[start : start + BATCH_MAX]
        requests = [("eth_call", [{"to": encode_hex(contract), "data": encode_hex(c.data)}, "latest"]) for c in page]
        try:
            answers = rpc.batch(requests)
        except NodeRefused as refused:
            raise explain_refusal(refused) from refused
        results.extend(call.read(parse_bytes(answer)) for call, answer in zip(page, answers, strict=True))
    return results


def explain_refusal(refused: NodeRefused) -> InvalidRequest | Exception:
    """A node's refusal in the contract's own words, where it has any."""
    reverted = bool(refused.data) or "revert" in refused.node_message.lower()
    return decode_revert(refused.data) if reverted else refused


def require_contract(rpc: RpcClient, contract: bytes, name: str) -> None:
    """Refuse to go on where the contract does not exist: calls to nowhere succeed and do nothing."""
    if not has_code(rpc, contract, "latest"):
        chain_id = parse_quantity(rpc.call("eth_chainId"))
        raise InvalidRequest(
            Reason.WRONG_NETWORK,
            f"there is no `{name}` at `{format_value(contract)}` on chain `{chain_id}`",
            hint="check the node's address, or deploy it there: `proofcast chain deploy`",
        )


def require_chain(rpc: RpcClient, expected: int | None) -> int:
    """The node's chain id, which must be the expected one if any."""
    chain_id = parse_quantity(rpc.call("eth_chainId"))
    if expected is not None and chain_id != expected:
        raise InvalidRequest(
            Reason.WRONG_NETWORK,
            f"the node at `{rpc.host}` is on chain `{chain_id}` but `{expected}` was asked for",
            hint="use a node of that chain, or correct the chain id",
            have=chain_id,
            need=expected,
        )
    return chain_id


def has_code(rpc: RpcClient, account: bytes, block: str) -> bool:
    return len(parse_bytes(rpc.call("eth_getCode", encode_hex(account), block))) > 0


def find_creation_block(rpc: RpcClient, contract: bytes) -> int:
    """The first block in which the contract has code, by bisection; 0 where the node keeps no old state."""
    low, high = 0, parse_quantity(rpc.call("eth_blockNumber"))
    try:
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if has_code(rpc, contract, hex(middle)) else (middle + 1, high)
    except NodeRefused:
        return 0
    return low


def find_logs(
    rpc: RpcClient,
    contract: bytes,
    wanted: type[TopicsEvent],
    *indexed: bytes | None,
    first: int,
) -> Iterator[Logged]:
    """Every event of one kind from a block on, oldest first; `indexed` filters by its indexed values."""
    for log in find_raw_logs(rpc, contract, compute_type_hash(wanted), *indexed, first=first):
        event = find_event(log.topics, log.data)
        if event is not None:
            yield Logged(event, log.transaction_hash, log.position)


def find_raw_logs(rpc: RpcClient, contract: bytes, *topics: bytes | None, first: int) -> Iterator[Log]:
    """Every log with these topics from a block on, oldest first; None stands for any."""
    chain_id, last = map(parse_quantity, rpc.batch([("eth_chainId", []), ("eth_blockNumber", [])]))
    wanted: list[Json] = [value and encode_hex(value) for value in topics]
    for start in range(first, last + 1, BLOCKS_PER_QUERY_MAX):
        end = min(start + BLOCKS_PER_QUERY_MAX - 1, last)
        for log in query_logs(rpc, contract, wanted, start, end):
            yield parse_log(log, chain_id)


def find_payload_type(rpc: RpcClient, contract: bytes, topic: bytes, first: int) -> str:
    """What a topic's owner last said of its payload; empty where nothing was said."""
    found = find_logs(rpc, contract, PayloadTypeChanged, topic, first=first)
    types = [logged.event.payload_type for logged in found if isinstance(logged.event, PayloadTypeChanged)]
    return types[-1] if types else ""


def query_logs(rpc: RpcClient, contract: bytes, topics: list[Json], start: int, end: int) -> list[Json]:
    """Logs of a range of blocks, halved as often as the node finds it too large."""
    query = {"address": encode_hex(contract), "topics": topics, "fromBlock": hex(start), "toBlock": hex(end)}
    try:
        return list(rpc.call("eth_getLogs", query))
    except NodeRefused:
        if start == end:
            raise
    middle = (start + end) // 2
    older = query_logs(rpc, contract, topics, start, middle)
    return older + query_logs(rpc, contract, topics, middle + 1, end)

"""What takes more than one call of `Exchanges`: deploying it, reading its logs, finding the next message."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from proofcast.chain.io.rpc import RpcClient
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.onchain import exchanges, queues
from proofcast.onchain.abi import format_value
from proofcast.onchain.exchange_events import (
    ExchangeEvent,
    Expired,
    Handed,
    Held,
    Routed,
    compute_exchange_type_hash,
    find_exchange_event,
)
from proofcast.onchain.io.artefacts import get_exchanges, get_exchanges_code
from proofcast.onchain.io.publishing import deploy_code
from proofcast.onchain.io.reading import find_creation_block, find_raw_logs, read, read_all
from proofcast.onchain.io.receipts import Receipt
from proofcast.onchain.io.sender import Sender
from proofcast.onchain.queues import Header, compute_message_hash
from proofcast.routing.route import get_rest

Wanted = TypeVar("Wanted", bound=ExchangeEvent)


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """Everything it takes to release a message."""

    queue: bytes
    header: Header
    key: bytes
    """What is left of its routing key."""
    payload: bytes

    @property
    def hash(self) -> bytes:
        return compute_message_hash(self.header, self.key, self.payload)


def deploy_exchanges(sender: Sender, topics: bytes) -> bytes:
    """Put `Exchanges` at its address, unless it is there."""
    deploy_code(sender, get_exchanges_code(topics))
    return get_exchanges(topics)


def find_events(receipt: Receipt, contract: bytes, wanted: type[Wanted]) -> Iterator[Wanted]:
    """The events of one kind that `Exchanges` logged in a transaction."""
    for log in receipt.logs:
        event = find_exchange_event(log.topics, log.data) if log.address == contract else None
        if isinstance(event, wanted):
            yield event


def get_event(receipt: Receipt, contract: bytes, wanted: type[Wanted]) -> Wanted:
    event = next(find_events(receipt, contract, wanted), None)
    if event is None:
        message = f"the transaction `0x{receipt.transaction_hash.hex()}` logged no `{wanted.__name__}`"
        raise InvalidInput(Reason.MALFORMED, message, hint="check that the address is that of `Exchanges`")
    return event


def find_exchange_logs(
    rpc: RpcClient, contract: bytes, wanted: type[Wanted], *indexed: bytes | None, first: int
) -> Iterator[Wanted]:
    """Every event of one kind from a block on, oldest first; `indexed` filters by its indexed values."""
    for log in find_raw_logs(rpc, contract, compute_exchange_type_hash(wanted), *indexed, first=first):
        event = find_exchange_event(log.topics, log.data)
        if isinstance(event, wanted):
            yield event


def list_bindings(rpc: RpcClient, contract: bytes, exchange: bytes) -> list[exchanges.Binding]:
    count = read(rpc, contract, exchanges.get_exchange(exchange)).bindings
    return read_all(rpc, contract, [exchanges.get_binding(exchange, place) for place in range(count)])


def list_places(rpc: RpcClient, contract: bytes, queue: bytes) -> list[queues.Place]:
    count = read(rpc, contract, queues.get_queue(queue)).places
    return read_all(rpc, contract, [queues.get_subscriber(queue, place) for place in range(count)])


def list_held(rpc: RpcClient, contract: bytes, queue: bytes) -> list[HeldMessage]:
    """The messages that wait in a queue or are half delivered, oldest first, put together from the logs."""
    first = find_creation_block(rpc, contract)
    handed = find_exchange_logs(rpc, contract, Handed, queue, first=first)
    ended = {page.number for page in handed if page.remaining == 0}
    ended |= {expired.number for expired in find_exchange_logs(rpc, contract, Expired, queue, first=first)}
    waiting = [held for held in find_exchange_logs(rpc, contract, Held, queue, first=first) if held.number not in ended]
    return [find_content(rpc, contract, held, first) for held in waiting]


def find_content(rpc: RpcClient, contract: bytes, held: Held, first: int) -> HeldMessage:
    """A held message with its key and payload, which are in the log of its publication."""
    sequence = held.header.sequence.to_bytes(32)
    routed = next(find_exchange_logs(rpc, contract, Routed, held.header.exchange, sequence, first=first), None)
    if routed is None:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"the node knows no message `{held.header.sequence}` of `{format_value(held.header.exchange)}`",
            hint="ask a node that keeps the logs of that time",
        )
    return HeldMessage(held.queue, held.header, get_rest(routed.key), routed.payload)


def find_next(rpc: RpcClient, contract: bytes, queue: bytes) -> HeldMessage:
    """The message whose turn it is to be released."""
    wanted = read(rpc, contract, queues.get_queue(queue)).next
    found = [message for message in list_held(rpc, contract, queue) if message.hash == wanted]
    return found[0] if found else refuse_empty(queue)


def find_oldest(rpc: RpcClient, contract: bytes, queue: bytes) -> HeldMessage:
    """The message that expires first; one that is half delivered does not expire."""
    state = read(rpc, contract, queues.get_queue(queue))
    found = [message for message in list_held(rpc, contract, queue) if not state.pending or message.hash != state.next]
    return found[0] if found else refuse_empty(queue)


def refuse_empty(queue: bytes) -> NoReturn:
    raise InvalidRequest(
        Reason.BAD_ARGUMENT, f"the queue `{format_value(queue)}` holds no message", hint="nothing needs to be done"
    )

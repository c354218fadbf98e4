"""What became of an event on the chain itself: which contracts it reached in the transaction that published it."""

from collections.abc import Sequence
from dataclasses import dataclass

from proofcast.chain.evidence import find_log
from proofcast.errors import InvalidRequest, Reason
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import Log, parse_receipt
from proofcast.feed.publication import read_exchange_log, read_message
from proofcast.onchain.events import Delivered, Published, TopicsEvent, find_event
from proofcast.onchain.exchange_events import Handed, Held, Routed
from proofcast.onchain.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Journey:
    topic: bytes
    transaction_index: int
    transaction_hash: bytes
    """Empty where the block came without transactions."""
    outcomes: dict[int, Outcome]
    """By index of the subscription."""
    remaining: int
    """Subscribers that are served by later pages, in other transactions."""
    pages: tuple[Handed, ...] = ()
    """Of a message: what its queues handed out."""
    held: frozenset[bytes] = frozenset()
    """Of a message: the queues that hold it back."""


def trace_journey(block: RawBlock, topics_address: bytes, exchanges_address: bytes, log_index: int) -> Journey:
    """From the logs of one transaction of a verified block: `Published`, then `Delivered` for each page.

    A message is `Routed`, then `Handed` or `Held` by each queue.
    """
    receipts = [parse_receipt(raw) for raw in block.receipts or ()]
    index, position = find_log(receipts, log_index)
    transaction_hash = keccak256(block.transactions[index]) if block.transactions else b""
    logs = receipts[index].logs
    routed = read_message(logs[position], exchanges_address)
    if routed:
        return trace_message(routed, logs, exchanges_address, index, transaction_hash)
    said = [read_own(log, topics_address) for log in logs]
    published = said[position]
    if not isinstance(published, Published):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, f"log `{log_index}` is no publication", hint="only publications reach contracts"
        )
    pages = [page for page in said if isinstance(page, Delivered) and is_page_of(page, published)]
    outcomes = {number: outcome for page in pages for number, outcome in page.by_index().items()}
    remaining = pages[-1].remaining if pages else 0
    return Journey(published.topic, index, transaction_hash, dict(sorted(outcomes.items())), remaining)


def trace_message(
    routed: Routed, logs: Sequence[Log], exchanges_address: bytes, index: int, transaction_hash: bytes
) -> Journey:
    said = [read_exchange_log(log, exchanges_address) for log in logs]
    name = (routed.exchange, routed.sequence)
    pages = [page for page in said if isinstance(page, Handed) and (page.exchange, page.sequence) == name]
    held = {one.queue for one in said if isinstance(one, Held) and (one.header.exchange, one.header.sequence) == name}
    remaining = sum({page.queue: page.remaining for page in pages}.values())
    waiting = frozenset(held - {page.queue for page in pages})
    return Journey(routed.exchange, index, transaction_hash, {}, remaining, tuple(pages), waiting)


def read_own(log: Log, topics_address: bytes) -> TopicsEvent | None:
    return find_event(log.topics, log.data) if log.address == topics_address else None


def is_page_of(page: Delivered, published: Published) -> bool:
    return (page.topic, page.sequence) == (published.topic, published.sequence)

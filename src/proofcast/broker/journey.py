"""What became of an event on the chain itself: which contracts it reached in the transaction that published it."""

from dataclasses import dataclass

from proofcast.chain.evidence import find_log
from proofcast.errors import InvalidRequest, Reason
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import Log, parse_receipt
from proofcast.onchain.events import Delivered, Published, TopicsEvent, find_event
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


def trace_journey(block: RawBlock, topics_address: bytes, log_index: int) -> Journey:
    """From the logs of one transaction of a verified block: `Published`, then `Delivered` for each page."""
    receipts = [parse_receipt(raw) for raw in block.receipts or ()]
    index, position = find_log(receipts, log_index)
    said = [read_own(log, topics_address) for log in receipts[index].logs]
    published = said[position]
    if not isinstance(published, Published):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, f"log `{log_index}` is no publication", hint="only publications reach contracts"
        )
    pages = [page for page in said if isinstance(page, Delivered) and is_page_of(page, published)]
    outcomes = {number: outcome for page in pages for number, outcome in page.by_index().items()}
    bodies = block.transactions
    transaction_hash = keccak256(bodies[index]) if bodies else b""
    remaining = pages[-1].remaining if pages else 0
    return Journey(published.topic, index, transaction_hash, dict(sorted(outcomes.items())), remaining)


def read_own(log: Log, topics_address: bytes) -> TopicsEvent | None:
    return find_event(log.topics, log.data) if log.address == topics_address else None


def is_page_of(page: Delivered, published: Published) -> bool:
    return (page.topic, page.sequence) == (published.topic, published.sequence)

"""Every event checked by its reader: the broker that sent it does not have to be believed.

An event that is applied is accepted if

- headers lead to its block (`lineage.py`);
- its receipt is proven by evidence under that block's receipts root;
- the log at its place, read as the contract writes publications, gives exactly this event;
- it is of the contract that the reader subscribed to, and of the topic and publisher where they are given by id; a
  message of an exchange reached the queue that is given by id, by the logs of the same receipt;
- its key is meant by the routing key that the reader gave;
- its sequence follows that of the event before it in the same topic, where all events of a topic are subscribed to.

So a broker can invent nothing, and cannot leave out an event between two others; it can be late, which shows in the
newest block. A log's number within its whole block is taken from the broker, but the same for all logs of a receipt.
"""

from dataclasses import dataclass, field, replace

from proofcast.chain.evidence import parse_evidence, verify_path, verify_receipt
from proofcast.chain.segment import BlockId
from proofcast.client.lineage import Lineage
from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum.receipt import Log
from proofcast.event import Event, Position, Step
from proofcast.feed.publication import build_event, find_queues, read_log, read_message
from proofcast.routing.meaning import is_meant

RECEIPTS_KEPT = 64
TOPICS_MAX = 1_000_000
"""Whose sequence is remembered: about a hundred megabytes."""
HINT = "the broker is wrong or lies about this event; use another one"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a subscription asked for, as far as it can be checked. Names of topics are the broker's word."""

    contract: bytes
    """Whose logs: that of the topics, or the one whose raw logs are read."""
    exchanges: bytes = b""
    """`Exchanges`, where messages of exchanges are wanted."""
    topic: bytes = b""
    queue: bytes = b""
    key: str = ""
    publisher: bytes = b""
    is_raw: bool = False
    has_gaps: bool = False
    """Are events of a topic left out because of what is in them? Then nobody can tell whether more are."""


@dataclass(frozen=True, slots=True)
class ProvenReceipt:
    logs: tuple[Log, ...]
    block_number: int
    timestamp: int
    first_log_index: int
    """In the block, as the broker says."""


@dataclass(slots=True)
class Checker:
    wanted: Wanted
    lineage: Lineage
    _receipts: dict[tuple[bytes, int], ProvenReceipt] = field(default_factory=dict)
    _evidence: bytes = b""
    """That came last, not looked at before the event it is for."""
    _sequences: dict[tuple[str, bytes], int] = field(default_factory=dict)
    """Of each topic; a topic and an exchange may have the same id."""

    def receive_evidence(self, data: bytes) -> None:
        self._evidence = data

    def forget_sequences(self) -> None:
        """What comes next may have come before."""
        self._sequences.clear()

    def check(self, event: Event) -> Event:
        """The same event with our own word of trust instead of the broker's."""
        at = event.position
        if event.step is Step.UNDO:
            return event  # nothing to prove: it is what we applied last, or refused as such
        trust = self.lineage.verify(BlockId(at.block_number, at.block_hash))
        receipt = self._receipts.get((at.block_hash, at.transaction_index)) or self._prove(at)
        verify_event(event, receipt, self.wanted)
        return replace(event, trust=trust)

    def follow_sequence(self, event: Event) -> None:
        """Notice what was left out between two events of a topic; a publisher or a condition of ours makes gaps."""
        if self.wanted.publisher or self.wanted.is_raw or self.wanted.has_gaps:
            return
        topic = (event.source, event.topic)
        before = self._sequences.get(topic)
        expected = event.sequence if before is None else before + 1
        if event.step is Step.UNDO:
            self._sequences[topic] = event.sequence - 1
        elif event.sequence != expected:
            raise refuse(f"event `{event.sequence}` of a topic came where `{expected}` was next", HINT)
        elif len(self._sequences) < TOPICS_MAX or before is not None:
            self._sequences[topic] = event.sequence

    def _prove(self, at: Position) -> ProvenReceipt:
        if not self._evidence:
            raise refuse(f"block `{at.block_number}` came without evidence", HINT)
        evidence = parse_evidence(self._evidence)
        header = verify_path(evidence.headers, at.block_hash).header
        if (evidence.transaction_index, header.number) != (at.transaction_index, at.block_number):
            raise refuse(
                f"evidence is of transaction `{evidence.transaction_index}` of block `{header.number}`, the event of"
                f" `{at.transaction_index}` of `{at.block_number}`",
                HINT,
            )
        logs = verify_receipt(evidence, header).logs
        proven = ProvenReceipt(logs, header.number, header.timestamp, at.log_index - evidence.log_position)
        self._evidence = b""
        self._receipts[at.block_hash, at.transaction_index] = proven
        if len(self._receipts) > RECEIPTS_KEPT:
            del self._receipts[next(iter(self._receipts))]
        return proven


def verify_event(event: Event, receipt: ProvenReceipt, wanted: Wanted) -> None:
    at = event.position
    place = at.log_index - receipt.first_log_index
    if at.block_number != receipt.block_number:
        raise refuse(
            f"the event is said to be of block `{at.block_number}`, its block is `{receipt.block_number}`", HINT
        )
    if not 0 <= place < len(receipt.logs):
        raise refuse(f"the receipt has `{len(receipt.logs)}` logs, so none at `{place}`", HINT)
    log = receipt.logs[place]
    message = read_message(log, wanted.exchanges)
    found = None if wanted.is_raw else message or read_log(log, wanted.contract)
    proven = build_event(found, log, at, receipt.timestamp, event.trust, event.finality, event.step)
    is_ours = message is not None or log.address == wanted.contract
    if proven is None or not is_ours or (proven.sequence == 0) != wanted.is_raw:
        raise refuse(f"log `{place}` of the receipt is nothing that was subscribed to", HINT)
    verify_same(event, proven)
    verify_route(event, receipt, wanted)
    for name in ("topic", "publisher"):
        value = getattr(wanted, name)
        if value and getattr(event, name) != value:
            raise refuse(f"the event's {name} is `0x{getattr(event, name).hex()}`, not `0x{value.hex()}`", HINT)


def verify_route(event: Event, receipt: ProvenReceipt, wanted: Wanted) -> None:
    if wanted.key and not is_meant(wanted.key, event.key):
        raise refuse(f"the routing key `{wanted.key}` does not mean `{show(event.key)}`", HINT)
    if wanted.queue and wanted.queue not in find_queues(receipt.logs, wanted.exchanges, event.topic, event.sequence):
        raise refuse(f"the message did not reach the queue `{show(wanted.queue)}`", HINT)


def verify_same(event: Event, proven: Event) -> None:
    if event == proven:
        return
    names = (name for name in Event.__slots__ if getattr(event, name) != getattr(proven, name))
    name = next(names)
    raise refuse(
        f"the broker says that {name} is `{show(getattr(event, name))}`, the log says `{show(getattr(proven, name))}`",
        HINT,
    )


def show(value: object) -> str:
    return f"0x{value[:32].hex()}" if isinstance(value, bytes) else str(value)


def refuse(message: str, hint: str) -> InvalidInput:
    return InvalidInput(Reason.DISAGREES, message, hint=hint)

"""Exchanges and queues as they are now, by what the contract has said: bindings, subscribers, messages, what is held.

What is said is applied in the chain's order and undone in the opposite one. So the last thing said about a binding, a
subscriber or a held message stands on top of what was said before, and an undo takes it off again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from proofcast.onchain.exchange_events import (
    BindingChanged,
    ExchangeCreated,
    ExchangeEvent,
    Expired,
    Handed,
    Held,
    QueueCreated,
    Routed,
    SubscriberChanged,
)
from proofcast.onchain.exchanges import Status
from proofcast.onchain.queues import Condition

Subject = tuple[type[ExchangeEvent], bytes, bytes | int, str]
"""What something is said about: its kind, exchange or queue, and which one of theirs."""


@dataclass(frozen=True, slots=True)
class ExchangeBook:
    exchange: bytes
    name: str
    is_open: bool
    messages: int
    bindings: tuple[tuple[bytes, str], ...]
    """Queue and binding key."""


@dataclass(frozen=True, slots=True)
class QueueBook:
    queue: bytes
    name: str
    condition: Condition
    messages: int
    subscribers: int
    held: int
    held_value_wei: int


class Books:
    def __init__(self) -> None:
        self._said: defaultdict[Subject, list[ExchangeEvent]] = defaultdict(list)
        self._messages: Counter[bytes] = Counter()
        """Of exchanges and of queues; an exchange's id has a mark before it."""

    def apply(self, event: ExchangeEvent) -> None:
        self._count(event, 1)
        subject = self._find_subject(event)
        if subject:
            self._said[subject].append(event)

    def undo(self, event: ExchangeEvent) -> None:
        subject = self._find_subject(event)
        if subject:
            self._said[subject].pop()
            if not self._said[subject]:
                del self._said[subject]
        self._count(event, -1)

    def list_exchanges(self) -> list[ExchangeBook]:
        bindings = defaultdict[bytes, list[tuple[bytes, str]]](list)
        for said in self._list_last(BindingChanged):
            if isinstance(said, BindingChanged) and said.status is Status.APPROVED:
                bindings[said.exchange].append((said.queue, said.key))
        return [
            ExchangeBook(
                made.exchange, made.name, made.open, self._messages[mark(made.exchange)], tuple(bindings[made.exchange])
            )
            for made in self._list_last(ExchangeCreated)
            if isinstance(made, ExchangeCreated)
        ]

    def list_queues(self) -> list[QueueBook]:
        subscribers, held, value = Counter[bytes](), Counter[bytes](), Counter[bytes]()
        for said in self._list_last(SubscriberChanged):
            if isinstance(said, SubscriberChanged) and said.status is Status.APPROVED:
                subscribers[said.queue] += 1
        for said in self._list_last(Held):
            if isinstance(said, Held):
                held[said.queue] += 1
                value[said.queue] += said.header.value_wei
        return [
            QueueBook(
                made.queue,
                made.name,
                made.terms.condition,
                self._messages[made.queue],
                subscribers[made.queue],
                held[made.queue],
                value[made.queue],
            )
            for made in self._list_last(QueueCreated)
            if isinstance(made, QueueCreated)
        ]

    def _list_last(self, kind: type[ExchangeEvent]) -> Iterator[ExchangeEvent]:
        return (said[-1] for subject, said in self._said.items() if subject[0] is kind)

    def _count(self, event: ExchangeEvent, by: int) -> None:
        """Messages: an exchange says so once, a queue by `Held` or, where it held none, by its first page."""
        if isinstance(event, Routed):
            self._messages[mark(event.exchange)] += by
        elif isinstance(event, Held) or (isinstance(event, Handed) and event.first == 0 and not self._is_held(event)):
            self._messages[event.queue] += by

    def _is_held(self, event: Handed | Expired) -> bool:
        return (Held, event.queue, event.number, "") in self._said

    def _find_subject(self, event: ExchangeEvent) -> Subject | None:
        match event:
            case ExchangeCreated():
                return ExchangeCreated, event.exchange, 0, ""
            case QueueCreated():
                return QueueCreated, event.queue, 0, ""
            case BindingChanged():
                return BindingChanged, event.exchange, event.queue, event.key
            case SubscriberChanged():
                return SubscriberChanged, event.queue, event.subscriber, ""
            case Held():
                return Held, event.queue, event.number, ""
            case Handed(remaining=0) | Expired() if self._is_held(event):
                return Held, event.queue, event.number, ""
        return None


def mark(exchange: bytes) -> bytes:
    """A queue may have the same id."""
    return b"x" + exchange

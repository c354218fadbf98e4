"""A durable subscription: what somebody wants, how it gets there, and how far it is.

What a subscriber was offered is written down before it is sent, in order, and stays *pending* until it is acknowledged.
So after any crash exactly the pending deliveries are repeated, marked as such, and then everything that follows the
*place* up to which deliveries were offered. The rules:

- an event is offered when the selection of the moment wants it;
- an undo is offered when the event itself was offered before (it is *given*), whatever the selection says now;
- what is given is forgotten when it is undone, or final: then it cannot be undone any more;
- the cursor stands before the first pending delivery, and at the place where nothing is pending;
- a changed subscription keeps place, cursor and pending deliveries; only a rewind moves it, and says what it repeats.
"""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from proofcast.broker.catalogue import Catalogue
from proofcast.broker.entry import Entry
from proofcast.broker.selection import TOPIC_LENGTH, Selection
from proofcast.event import Event, Finality, Step

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
BATCH_SIZE_MAX = 1_000
"""Deliveries handed out at a time: a megabyte of ordinary events."""
BATCH_SIZE_DEFAULT = 100
OPTIONS_MAX = 32
"""Settings of one transport."""
OPTION_LENGTH_MAX = 2_048
SECRETS_MAX = 4
"""Keys at one time: the one in use and those that leave."""

LogName = tuple[bytes, int]
"""Hash of the block and index of the log."""


class Transport(StrEnum):
    PULL = "pull"
    """The subscriber asks: pages with long poll, or a stream of server-sent events."""
    WEBSOCKET = "websocket"
    WEBHOOK = "webhook"
    KAFKA = "kafka"


class Status(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    """By its owner."""
    DISABLED = "disabled"
    """By the broker, after failures for days."""


class Ordering(StrEnum):
    """What a failing delivery holds up; everything else goes on."""

    TOPIC = "topic"
    KEY = "key"


@dataclass(frozen=True, slots=True)
class Terms:
    """What its owner may choose, and change."""

    selection: Selection = field(default_factory=Selection)
    finality: Finality = Finality.LATEST
    transport: Transport = Transport.PULL
    batch_size: int = BATCH_SIZE_DEFAULT
    ordering: Ordering = Ordering.TOPIC
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the transport, e.g. the `url` of a webhook."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Keys of the transport, newest first; no answer and no log ever holds them."""


@dataclass(frozen=True, slots=True)
class Subscription:
    name: str
    terms: Terms
    status: Status
    reason: str
    """Why it is disabled."""
    generation: int
    """Counts the changes."""
    place: str
    """Cursor up to which everything was offered."""
    cursor: str
    """Up to which everything was acknowledged."""
    repeats_until: tuple[int, int]
    """Block and log up to which an event may have been delivered before: where it was rewound from."""
    pending: int
    dead: int
    acknowledged: int
    """Deliveries, ever."""
    failing_since: float | None
    created_at: float


class Pending(NamedTuple):
    """One delivery that was offered and not yet acknowledged."""

    ordinal: int
    """Counted per subscription."""
    event_id: str
    order_key: str
    cursor: str
    body: bytes
    """The CloudEvents object, as it was first offered."""
    log: LogName
    step: Step
    attempts: int = 0
    due_at: float = 0.0
    """Seconds since 1970, before which it is not sent again."""
    is_repeated: bool = False

    def encode(self) -> bytes:
        """The CloudEvents object, marked where it may have been delivered before."""
        return mark_repeated(self.body) if self.is_repeated else self.body


def mark_repeated(body: bytes) -> bytes:
    return body[:-1] + b',"repeated":"true"}'


def select_entries(
    entries: Iterable[Entry], selection: Selection, catalogue: Catalogue, given: Set[LogName]
) -> list[Entry]:
    """Which of the entries on somebody's way it is offered; `given` is what it was offered before and may be undone."""
    held, chosen = set(given), []
    for entry in entries:
        log = get_log_name(entry)
        if entry.move.step is Step.UNDO and log in held:
            held.discard(log)
            chosen.append(entry)
        elif entry.move.step is Step.APPLY and is_wanted(entry, selection, catalogue):
            held.add(log)
            chosen.append(entry)
    return chosen


def is_wanted(entry: Entry, selection: Selection, catalogue: Catalogue) -> bool:
    if not selection.is_by_topic:
        return selection.matches(entry.delivery.event, catalogue, entry.queues)
    return entry.topic != b"" and selection.topic in (b"", entry.topic)


def get_log_name(entry: Entry) -> LogName:
    return entry.move.record.block_hash, entry.move.record.log_index


def get_order_key(entry: Entry, ordering: Ordering) -> str:
    if entry.topic and ordering is Ordering.TOPIC:
        return entry.topic[-TOPIC_LENGTH:].hex()
    return get_event_order_key(entry.delivery.event, ordering)


def get_event_order_key(event: Event, ordering: Ordering) -> str:
    """Deliveries with the same one arrive in the ledger's order; raw logs are ordered by contract."""
    if event.sequence == 0:
        return event.source
    topic = event.topic.hex()
    return topic if ordering is Ordering.TOPIC else f"{topic}/{event.key.hex()}"

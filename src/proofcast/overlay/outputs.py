"""What a peer wants done or known, in order. A `Store` stands before whatever depends on it."""

from dataclasses import dataclass

from proofcast.overlay.identity import Contact
from proofcast.overlay.messages import Message
from proofcast.overlay.records import Advert, Event, EventId
from proofcast.overlay.seen import Mark
from proofcast.routing.predicate import Predicate


@dataclass(frozen=True, slots=True)
class Send:
    to: Contact
    message: Message


@dataclass(frozen=True, slots=True)
class Store:
    """Keep it over a restart: the event it stands for must not be delivered a second time."""

    mark: Mark


@dataclass(frozen=True, slots=True)
class Deliver:
    """An event for this peer's user, at most once."""

    event: Event


@dataclass(frozen=True, slots=True)
class Active:
    """From now on events that match the subscription arrive."""

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Settle:
    """Every rendezvous of the event has accepted it."""

    event_id: EventId


@dataclass(frozen=True, slots=True)
class Abandon:
    """A rendezvous could not be reached in all attempts: the event may have reached only some."""

    event_id: EventId


@dataclass(frozen=True, slots=True)
class Found:
    """What the boards say about groups that overlap the predicate."""

    predicate: Predicate
    adverts: tuple[Advert, ...]


@dataclass(frozen=True, slots=True)
class Admit:
    """The answer to joining a group."""

    group: Predicate
    predicate: Predicate
    is_admitted: bool


Output = Send | Store | Deliver | Active | Settle | Abandon | Found | Admit

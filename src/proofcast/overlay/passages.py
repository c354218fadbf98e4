"""Events on their way down: from the rendezvous of a key along the statements, and the acknowledgements back up.

A passage is one event under one key at one peer. It has a leg for each interested peer below; a leg tries in turn the
shortcut, the peer itself and the peer's backups in its place, and ends with an acknowledgement from whoever was asked.
When no leg is left the passage is over and whoever sent the event is told. Interior peers never repeat by themselves:
the rendezvous sends again what is not acknowledged, and a repeated event makes each peer try its open legs once more,
so only those who lack it get it again.

A repeated event is acknowledged, never delivered or forwarded twice. An acknowledgement counts only from the very peer
that was asked, standing for whom it was asked to stand; others are counted as `forged`. Passages are bounded: the
oldest is forgotten, which can cost a repetition but no event.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from proofcast.overlay.identity import Contact
from proofcast.overlay.messages import Ack, Notify, Subscribe
from proofcast.overlay.records import Event, EventId
from proofcast.overlay.seat import Seat
from proofcast.overlay.settings import PASSAGES_MAX

Route = tuple[Contact, bytes | None]
"""Whom to send an event, and in whose place that peer is to forward it."""
Place = bytes | None
"""In whose place: None for the peer's own."""


@dataclass(slots=True)
class Leg:
    routes: list[Route]
    tried: int = 0


@dataclass(slots=True)
class Passage:
    event: Event
    key: int
    place: Place
    sources: dict[bytes, Contact] = field(default_factory=dict)
    """Who sent it here and waits for the acknowledgement."""
    legs: dict[bytes, Leg] = field(default_factory=dict)
    """Open legs, by the public key of the peer below."""
    asked: dict[tuple[bytes, Place], bytes] = field(default_factory=dict)
    """(who was asked, in whose place) to the leg it was asked for."""


class Passages:
    def __init__(self, seat: Seat, on_end: Callable[[EventId, int], None]) -> None:
        self._seat = seat
        self._on_end = on_end
        """Called when an event has reached everybody below in this peer's own place."""
        self._passages: OrderedDict[tuple[EventId, int], dict[Place, Passage | None]] = OrderedDict()
        """None where a passage is over."""

    def __len__(self) -> int:
        return len(self._passages)

    def start(
        self, event: Event, key: int, place: Place, source: Contact | None, routes: dict[bytes, list[Route]]
    ) -> None:
        """Send the event on along new legs; without any it has arrived."""
        passage = Passage(event, key, place, legs={child: Leg(tries) for child, tries in routes.items()})
        if source is not None:
            passage.sources[source.public_key] = source
        self._passages.setdefault((event.id, key), {})[place] = passage
        if len(self._passages) > PASSAGES_MAX:
            self._passages.popitem(last=False)
        for child in list(passage.legs):
            self._advance(passage, child)
        self._end_if_over(passage)

    def repeat(self, event_id: EventId, key: int, place: Place, source: Contact | None) -> bool:
        """Deal with an event that was here before; False where it was not."""
        passages = self._passages.get((event_id, key), {})
        if place not in passages:
            return False
        passage = passages[place]
        if passage is None:
            if source is not None:
                self._seat.send(source, Ack(event_id, key, place))
            return True
        if source is not None:
            passage.sources[source.public_key] = source
        for child in list(passage.legs):
            self._advance(passage, child)
        return True

    def is_over(self, event_id: EventId, key: int) -> bool:
        passages = self._passages.get((event_id, key), {})
        return None in passages and passages[None] is None

    def forget(self, event_id: EventId, key: int) -> None:
        self._passages.pop((event_id, key), None)

    def _advance(self, passage: Passage, child: bytes) -> None:
        """Try a leg's next route, and after the last one the first again."""
        leg = passage.legs[child]
        contact, place = leg.routes[leg.tried % len(leg.routes)]
        leg.tried += 1
        passage.asked[contact.public_key, place] = child
        self._seat.send(contact, Notify(passage.event, passage.key, place))

    def acknowledge(self, sender: Contact, message: Ack) -> None:
        passages = self._passages.get((message.event_id, message.key), {})
        asked = (sender.public_key, message.stand_in_for)
        for passage in [passage for passage in passages.values() if passage is not None and asked in passage.asked]:
            if passage.legs.pop(passage.asked[asked], None) is not None:
                self._end_if_over(passage)
            return
        if None not in passages.values():
            self._seat.counts["forged"] += 1

    def fail(self, contact: Contact, event_id: EventId, key: int, place: Place) -> None:
        """The peer did not get it or cannot stand in: go on with the next route at once, but not round in circles."""
        for passage in self._passages.get((event_id, key), {}).values():
            child = passage.asked.pop((contact.public_key, place), None) if passage else None
            leg = passage.legs.get(child) if passage and child is not None else None
            if passage and child is not None and leg and leg.tried % len(leg.routes):
                self._advance(passage, child)

    def _end_if_over(self, passage: Passage) -> None:
        if passage.legs:
            return
        self._passages[passage.event.id, passage.key][passage.place] = None
        for source in passage.sources.values():
            self._seat.send(source, Ack(passage.event.id, passage.key, passage.place))
        if passage.place is None:
            self._on_end(passage.event.id, passage.key)


def find_routes(statement: Subscribe) -> list[Route]:
    """The shortcut, the peer itself, then its backups in its place."""
    interest = statement.interest
    first: list[Route] = [(statement.shortcut.origin, None)] if statement.shortcut else []
    stand_ins: list[Route] = [(backup, interest.origin.public_key) for backup in interest.backups]
    return [*first, (interest.origin, None), *stand_ins]

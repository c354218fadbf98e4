"""Kademlia at work: answering lookups, running them, joining the network and keeping the table fresh."""

from collections.abc import Callable
from functools import partial

from proofcast.overlay.identity import Contact, is_contact_genuine
from proofcast.overlay.lookup import Lookup
from proofcast.overlay.messages import FindNode, Nodes
from proofcast.overlay.seat import Seat

LOOKUPS_MAX = 200
"""Lookups at a time; one more is not begun, and its caller tries again at the next refresh."""
CHECK_S = 60.0
"""At most so often an old contact is asked whether it is still there, to make room for a newcomer."""
LOST_ASKED = 4
"""Vanished contacts that are asked at each refresh."""

Report = Callable[[list[Contact], float], None]


class Finding:
    def __init__(self, seat: Seat, on_joined: Callable[[float], None]) -> None:
        self._seat = seat
        self._on_joined = on_joined
        self._lookups: dict[int, tuple[Lookup, list[Report]]] = {}
        self._next_check = 0.0
        self._bootstrap: tuple[Contact, ...] = ()

    def answer(self, sender: Contact, message: FindNode) -> None:
        contacts = self._seat.table.find_closest(message.target, self._seat.settings.bucket_contacts)
        known = tuple(contact for contact in contacts if contact.public_key != sender.public_key)
        self._seat.send(sender, Nodes(message.target, known))

    def find(self, target: int, report: Report, now: float, seeds: tuple[Contact, ...] = ()) -> None:
        """Look for the peers nearest to the target and report those that answered."""
        settings = self._seat.settings
        if target in self._lookups:
            self._lookups[target][1].append(report)
            return
        known = [*seeds, *self._seat.table.find_closest(target, settings.bucket_contacts)]
        if not known or len(self._lookups) >= LOOKUPS_MAX:
            report([], now)
            return
        lookup = Lookup(
            target,
            known,
            paths=settings.disjoint_paths,
            parallel=settings.parallel_queries,
            size=settings.bucket_contacts,
        )
        self._lookups[target] = lookup, [report]
        self._step(target, now)

    def _step(self, target: int, now: float) -> None:
        lookup, reports = self._lookups[target]
        for contact in lookup.ask():
            if contact.public_key == self._seat.contact.public_key:
                lookup.fail(contact.public_key)
                continue
            self._seat.send(contact, FindNode(target))
            self._seat.timers.set(now + self._seat.settings.query_s, partial(self._time_out, target, contact))
        if lookup.is_done:
            del self._lookups[target]
            for report in reports:
                report(lookup.get_result(), now)

    def receive_nodes(self, sender: Contact, message: Nodes, now: float) -> None:
        entry = self._lookups.get(message.target)
        if entry is None or not entry[0].is_asking(sender.public_key):
            return
        named = message.contacts[: self._seat.settings.bucket_contacts]
        entry[0].answer(sender.public_key, [one for one in named if is_contact_genuine(one, self._seat.verify)])
        self._step(message.target, now)

    def _time_out(self, target: int, contact: Contact, now: float) -> None:
        entry = self._lookups.get(target)
        if entry is not None and entry[0].is_asking(contact.public_key):
            self.fail(target, contact, now)

    def fail(self, target: int, contact: Contact, now: float) -> None:
        entry = self._lookups.get(target)
        if entry is not None and entry[0].is_asking(contact.public_key):
            entry[0].fail(contact.public_key)
            self._step(target, now)

    def join(self, bootstrap: tuple[Contact, ...], now: float) -> None:
        """Look for oneself: the peers asked on the way get to know us, and the nearest become our neighbours."""
        self._bootstrap = bootstrap or self._bootstrap
        self._seat.is_joining = bool(self._bootstrap)
        self.find(self._seat.position, self._end_joining, now, self._bootstrap)

    def _end_joining(self, contacts: list[Contact], now: float) -> None:
        """Where nobody answered, try again later, for as long as it takes."""
        if not contacts and self._bootstrap:
            self._seat.timers.set(now + self._seat.settings.resend_s, partial(self.join, ()))
            return
        self._seat.is_joining = False
        self._on_joined(now)

    def refresh(self, draw: int, now: float) -> None:
        """Look around here and at a random place, and ask whether vanished contacts are back."""
        for lost in list(self._seat.table.lost.values())[-LOST_ASKED:]:
            self._seat.send(lost, FindNode(self._seat.position))
        self.find(self._seat.position, ignore, now, self._bootstrap[:LOST_ASKED])
        self.find(draw, ignore, now)

    def make_room(self, newcomer: Contact, now: float) -> None:
        """Is the oldest contact of the newcomer's bucket still there? If not, the newcomer enters when heard again."""
        oldest = self._seat.table.find_oldest(newcomer.position)
        if oldest is not None and now >= self._next_check:
            self._next_check = now + CHECK_S
            self._seat.send(oldest, FindNode(self._seat.position))


def ignore(contacts: list[Contact], now: float) -> None:
    """A lookup that is run for what it does to the tables."""

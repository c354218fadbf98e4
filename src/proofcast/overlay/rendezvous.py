"""The closest peer to a key: it takes events in, hands them down, and does not rest until everybody has them.

- An event that arrives is logged, given to `f` trackers (the next closest peers) and sent down the tree; the publisher
  hears `Accepted` when every tracker has confirmed, so that from then on `f` may vanish together without losing it.
- What is not acknowledged after `resend_s` is sent again to those who lack it; after `resends_max` attempts it is left
  to the log, from which a peer that comes back fetches it.
- A tracker is a stand-in for the publisher: unless it hears `Settled` it publishes the event again, to whoever is the
  rendezvous by then, which may be itself.
- A rendezvous younger than two refreshes also sends each event to the peers that were the closest before it, because
  most statements are still theirs. One whose predecessor vanished uses the copies that it left.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial

from proofcast.overlay.identity import Contact
from proofcast.overlay.inbox import Inbox
from proofcast.overlay.logs import Logs
from proofcast.overlay.messages import Accepted, Publish, Settled, Subscribe, Track, Tracked
from proofcast.overlay.passages import Passages, Route, find_routes
from proofcast.overlay.records import Event, EventId
from proofcast.overlay.seat import Seat, get_ms
from proofcast.overlay.settings import PASSAGES_MAX, TRACKED_MAX
from proofcast.overlay.statements import Statements


@dataclass(slots=True)
class Charge:
    """An event this peer is the rendezvous of, until it is settled."""

    event: Event
    unconfirmed: dict[bytes, Contact]
    """Trackers that have not yet said that they have it."""
    trackers: list[Contact]
    reply_to: dict[bytes, Contact] = field(default_factory=dict)
    attempts: int = 0


class Rendezvous:
    def __init__(self, seat: Seat, inbox: Inbox, statements: Statements, passages: Passages, logs: Logs) -> None:
        self._seat = seat
        self._inbox = inbox
        self._statements = statements
        self._passages = passages
        self._logs = logs
        self.charges: OrderedDict[tuple[EventId, int], Charge] = OrderedDict()
        self.tracked: OrderedDict[tuple[EventId, int], Event] = OrderedDict()
        self._postponed: list[Publish] = []

    # --- as rendezvous

    def accept(self, event: Event, key: int, reply_to: Contact, now: float) -> None:
        name = (event.id, key)
        charge = self.charges.get(name)
        if charge is None and self._passages.is_over(event.id, key):
            self._answer(event.id, key, reply_to)
            self._seat.send(reply_to, Settled(event.id, key))
        elif charge is None:
            self._begin(event, key, reply_to, now)
        else:
            charge.reply_to[reply_to.public_key] = reply_to
            for tracker in charge.unconfirmed.values():
                self._seat.send(tracker, Track(event, key))
            self._reply_if_safe(name, charge)

    def _begin(self, event: Event, key: int, reply_to: Contact, now: float) -> None:
        self._logs.add(key, event, get_ms(now))
        self._logs.hold(key, event.id)
        if self._seat.settings.reliable:
            trackers = self._seat.find_heirs(key)
            charge = Charge(event, {tracker.public_key: tracker for tracker in trackers}, trackers)
            charge.reply_to[reply_to.public_key] = reply_to
            self.charges[event.id, key] = charge
            if len(self.charges) > PASSAGES_MAX:
                self.charges.popitem(last=False)
            for tracker in trackers:
                self._seat.send(tracker, Track(event, key))
            self._reply_if_safe((event.id, key), charge)
            self._seat.timers.set(now + self._seat.settings.resend_s, partial(self._resend, event.id, key))
        if not self._passages.repeat(event.id, key, None, None):
            self._inbox.offer(event)
            self._passages.start(event, key, None, None, self.find_legs(event, key, now))

    def find_legs(self, event: Event, key: int, now: float) -> dict[bytes, list[Route]]:
        """Everybody who gets the event from its rendezvous."""
        statements = {child.interest.origin.public_key: child for child in self._statements.get_children(key)}
        for owner, left in self._statements.iterate_inherited(key):
            if owner not in self._seat.table and owner not in statements:
                for statement in left:
                    statements.setdefault(statement.interest.origin.public_key, statement)
        legs = find_interested(list(statements.values()), event, self._seat.contact.public_key)
        if now - self._seat.joined < 2 * self._seat.settings.refresh_s:
            for elder in self._seat.table.find_closest(key, self._seat.settings.backups + 1):
                if elder.public_key not in statements:
                    legs[elder.public_key] = [(elder, None)]
        return legs

    def _resend(self, event_id: EventId, key: int, now: float) -> None:
        charge = self.charges.get((event_id, key))
        if charge is None:
            return
        charge.attempts += 1
        if charge.attempts >= self._seat.settings.resends_max:
            self._seat.counts["undelivered"] += 1
            self._passages.forget(event_id, key)
            self.settle(event_id, key)
            return
        for tracker in charge.unconfirmed.values():
            self._seat.send(tracker, Track(charge.event, key))
        self._passages.repeat(event_id, key, None, None)
        self._seat.timers.set(now + self._seat.settings.resend_s, partial(self._resend, event_id, key))

    def settle(self, event_id: EventId, key: int) -> None:
        """Everybody has it: the trackers may rest."""
        charge = self.charges.get((event_id, key))
        if charge is None or charge.unconfirmed:
            return
        del self.charges[event_id, key]
        for tracker in charge.trackers:
            self._seat.send(tracker, Settled(event_id, key))

    def confirm(self, sender: Contact, message: Tracked) -> None:
        name = (message.event_id, message.key)
        if not self._seat.is_rendezvous(message.key):
            self._logs.release(message.key, message.event_id)
        charge = self.charges.get(name)
        if charge is None or charge.unconfirmed.pop(sender.public_key, None) is None:
            return
        self._reply_if_safe(name, charge)
        if self._passages.is_over(*name):
            self.settle(*name)

    def lose_tracker(self, contact: Contact, event: Event, key: int) -> None:
        """A tracker vanished: another takes its place, if there is one."""
        charge = self.charges.get((event.id, key))
        if charge is None or charge.unconfirmed.pop(contact.public_key, None) is None:
            return
        known = {tracker.public_key for tracker in charge.trackers}
        charge.trackers = [tracker for tracker in charge.trackers if tracker.public_key != contact.public_key]
        for heir in self._seat.find_heirs(key):
            if heir.public_key not in known:
                charge.trackers.append(heir)
                charge.unconfirmed[heir.public_key] = heir
                self._seat.send(heir, Track(event, key))
        self._reply_if_safe((event.id, key), charge)
        if self._passages.is_over(event.id, key):
            self.settle(event.id, key)

    def _reply_if_safe(self, name: tuple[EventId, int], charge: Charge) -> None:
        if not charge.unconfirmed:
            for reply_to in charge.reply_to.values():
                self._answer(*name, reply_to)
            charge.reply_to.clear()

    def _answer(self, event_id: EventId, key: int, reply_to: Contact) -> None:
        self._seat.send(reply_to, Accepted(event_id, key))

    # --- as tracker

    def track(self, sender: Contact, message: Track, now: float) -> None:
        name = (message.event.id, message.key)
        self._logs.add(message.key, message.event, get_ms(now))
        if name not in self.tracked:
            self.tracked[name] = message.event
            if len(self.tracked) > TRACKED_MAX:
                self.tracked.popitem(last=False)
            self._watch(name, 0, now)
        self._seat.send(sender, Tracked(*name))

    def _watch(self, name: tuple[EventId, int], attempts: int, now: float) -> None:
        """Trackers wait longer than the rendezvous, the more distant the longer, so that they rarely speak at once."""
        patience_s = self._seat.settings.resend_s * (2 + attempts)
        self._seat.timers.set(now + patience_s, partial(self._republish, name, attempts))

    def _republish(self, name: tuple[EventId, int], attempts: int, now: float) -> None:
        event = self.tracked.get(name)
        if event is None:
            return
        if attempts >= self._seat.settings.resends_max:
            del self.tracked[name]
            return
        self._watch(name, attempts + 1, now)
        self.forward(Publish(event, name[1], self._seat.contact), now)

    def release(self, event_id: EventId, key: int) -> None:
        self.tracked.pop((event_id, key), None)

    # --- on the way

    def forward(self, message: Publish, now: float) -> None:
        """One hop closer, or taken in."""
        hop = self._seat.table.find_next_hop(message.key)
        if hop is not None:
            self._seat.send(hop, message)
        elif not self._seat.is_joining:
            self.accept(message.event, message.key, message.reply_to, now)
        elif len(self._postponed) < PASSAGES_MAX:
            self._postponed.append(message)

    def begin(self, now: float) -> None:
        """The neighbours are found: now it is clear who is the rendezvous of what arrived meanwhile."""
        postponed, self._postponed = self._postponed, []
        for message in postponed:
            self.forward(message, now)


def find_interested(statements: list[Subscribe], event: Event, own: bytes) -> dict[bytes, list[Route]]:
    return {
        statement.interest.origin.public_key: find_routes(statement)
        for statement in statements
        if statement.interest.is_interested(event.attributes) and statement.interest.origin.public_key != own
    }

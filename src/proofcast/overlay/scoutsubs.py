"""ScoutSubs: every event to every rendezvous of its attributes, and from there down the paths of the subscriptions.

This module joins the parts and deals with what concerns several of them:

| part | job |
|---|---|
| `trunks`, `subscribing`, `statements` | subscriptions up, filter tables, copies |
| `publishing` | own events to their rendezvous |
| `rendezvous` | taking events in, trackers, repetition |
| `passages` | events down, acknowledgements up |
| `recalls`, `logs` | the recent past |

A subscription is kept under the key of one of its attributes, that nearest to the subscriber, so an event reaches a
subscriber along one tree although it visits the rendezvous of all its attributes.
"""

from proofcast.errors import InvalidRequest, Reason
from proofcast.overlay.finding import Finding
from proofcast.overlay.identity import Contact, compute_key
from proofcast.overlay.inbox import Inbox
from proofcast.overlay.logs import Logs
from proofcast.overlay.messages import Handover, Notify, Publish, Track, Tracked, Unable
from proofcast.overlay.passages import Passages
from proofcast.overlay.publishing import Publishing
from proofcast.overlay.recalls import Recalls, cut_pages
from proofcast.overlay.records import Event, EventId, is_event_genuine
from proofcast.overlay.rendezvous import Rendezvous, find_interested
from proofcast.overlay.seat import Seat, get_ms
from proofcast.overlay.settings import LOG_EVENTS_MAX, SUBSCRIPTIONS_MAX
from proofcast.overlay.statements import Statements
from proofcast.overlay.subscribing import Subscribing
from proofcast.overlay.trunks import Trunks
from proofcast.routing.constraint import Not
from proofcast.routing.predicate import Predicate, overlaps


class ScoutSubs:
    def __init__(self, seat: Seat, finding: Finding, inbox: Inbox, session: int) -> None:
        self._seat = seat
        self._inbox = inbox
        self.statements = Statements()
        self.logs = Logs(seat.settings.log_s)
        self.trunks = Trunks(seat, self.statements)
        self.subscribing = Subscribing(seat, self.statements, self.trunks)
        self.passages = Passages(seat, self._end)
        self.rendezvous = Rendezvous(seat, inbox, self.statements, self.passages, self.logs)
        self.publishing = Publishing(seat, self.rendezvous, session)
        self.recalls = Recalls(seat, finding, inbox, self.trunks, self.logs)

    # --- commands

    def subscribe(self, predicate: Predicate, since: float, now: float) -> None:
        if len(self.trunks.own) >= SUBSCRIPTIONS_MAX:
            message = f"this peer has `{SUBSCRIPTIONS_MAX}` subscriptions already"
            raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="unsubscribe from some, or start another peer")
        key = self._choose_key(predicate)
        self._inbox.wanted[predicate] = get_ms(since)
        self.trunks.subscribe(predicate, key, now)
        self.recalls.forget_progress(key)
        if since < now:
            self.recalls.start(key, now)

    def _choose_key(self, predicate: Predicate) -> int:
        """Of the possible keys the nearest; before it one whose tree this peer is part of anyway."""
        keys = find_keys(predicate, self.trunks.own)
        joined = [key for key in keys if key in self.trunks.trunks or self._seat.is_rendezvous(key)]
        return min(joined or keys, key=lambda key: key ^ self._seat.position)

    def unsubscribe(self, predicate: Predicate, now: float) -> None:
        if predicate not in self.trunks.own:
            hint = "`proofcast peer status` lists the subscriptions"
            raise InvalidRequest(Reason.BAD_ARGUMENT, f"there is no subscription `{predicate}`", hint=hint)
        del self._inbox.wanted[predicate]
        self.trunks.unsubscribe(predicate, now)

    # --- events

    def receive_publish(self, message: Publish, now: float) -> None:
        if self._is_genuine(message.event):
            self.rendezvous.forward(message, now)

    def receive_notify(self, sender: Contact, message: Notify, now: float) -> None:
        event, key, place = message.event, message.key, message.stand_in_for
        source = sender if self._seat.settings.reliable else None
        if self.passages.repeat(event.id, key, place, source):
            self._seat.counts["repeated"] += 1
            return
        if not self._is_genuine(event):
            return
        statements = self.statements.get_children(key) if place is None else self.statements.find_copy(place, key)
        if statements is None:
            self._seat.send(sender, Unable(event.id, key, place or b""))
            return
        is_delivered = self._inbox.offer(event)
        routes = find_interested(statements, event, self._seat.contact.public_key)
        if not is_delivered and not routes:
            self._seat.counts["redundant"] += 1
        self.passages.start(event, key, place, source, routes)

    def _is_genuine(self, event: Event) -> bool:
        if is_event_genuine(event, self._seat.verify):
            return True
        self._seat.counts["forged"] += 1
        return False

    def _end(self, event_id: EventId, key: int) -> None:
        self.rendezvous.settle(event_id, key)

    def receive_track(self, sender: Contact, message: Track, now: float) -> None:
        if self._is_genuine(message.event):
            self.rendezvous.track(sender, message, now)

    # --- changes of the neighbourhood

    def receive_handover(self, sender: Contact, message: Handover, now: float) -> None:
        """Log it and say so; where we are not the closest either, it goes on."""
        for event in message.events[:LOG_EVENTS_MAX]:
            if self._is_genuine(event):
                if self.logs.add(message.key, event, get_ms(now)):
                    self.logs.hold(message.key, event.id)
                self._inbox.offer_past(event)
                self._seat.send(sender, Tracked(event.id, message.key))
        self._hand_over(message.key)

    def yield_to(self, contact: Contact, now: float) -> None:
        """A closer peer has come: the logs of its keys are its own now; the trunks follow by themselves."""
        for key in self.logs.get_held_keys():
            if self._seat.table.find_next_hop(key) is contact:
                self._hand_over(key)
        self.trunks.yield_to(contact, now)

    def _hand_over(self, key: int) -> None:
        """Repeated at every refresh until the closer peer says that it has it."""
        hop = self._seat.table.find_next_hop(key)
        if hop is not None:
            for page in cut_pages(self.logs.get_held(key)):
                self._seat.send(hop, Handover(key, page))

    def begin(self, now: float) -> None:
        """The neighbours are found: what was asked and published before can go its way."""
        for key in list(self.trunks.trunks):
            self.trunks.update(key, now)
        self.rendezvous.begin(now)
        if self._seat.settings.reliable:
            self.recalls.refresh(now)

    def refresh(self, now: float) -> None:
        self.trunks.refresh(now)
        if self._seat.settings.reliable:
            self.recalls.refresh(now)
        self.logs.expire(get_ms(now))
        for key in self.logs.get_held_keys():
            self._hand_over(key)

    def swap(self, now: float) -> None:
        for key in sorted(self.statements.swap()):
            self.trunks.update(key, now)


def find_keys(predicate: Predicate, own: dict[Predicate, int]) -> list[int]:
    """The keys under which a subscription may be kept: those of the attributes that every matching event carries.

    Keys already used by an overlapping subscription are the only choice: an event that matches both then arrives once.
    """
    keys = [compute_key(name) for name, demand in predicate.constraints if not isinstance(demand, Not)]
    if not keys:
        message = f"`{predicate}` demands no attribute, only the absence of some"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="add an attribute that the events carry")
    return [key for other, key in own.items() if key in keys and overlaps(predicate, other)] or keys

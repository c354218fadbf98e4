"""The publisher's side: an event goes to the rendezvous of each of its attributes until that one accepts it."""

from dataclasses import dataclass
from functools import partial

from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.overlay.identity import Contact, compute_key
from proofcast.overlay.messages import Accepted, Publish
from proofcast.overlay.outputs import Abandon, Settle
from proofcast.overlay.records import Event, EventId, sign_event
from proofcast.overlay.rendezvous import Rendezvous
from proofcast.overlay.seat import Seat, get_ms
from proofcast.overlay.settings import ATTRIBUTES_MAX, PAYLOAD_BYTES_MAX, UNACCEPTED_MAX
from proofcast.routing.attributes import EventAttributes


@dataclass(slots=True)
class Outgoing:
    event: Event
    keys: set[int]
    """Where it is not yet accepted."""
    attempts: int = 0


class Publishing:
    def __init__(self, seat: Seat, rendezvous: Rendezvous, session: int) -> None:
        self._seat = seat
        self._rendezvous = rendezvous
        self._session = session
        self._sequence = 0
        self.outgoing: dict[EventId, Outgoing] = {}

    def make_event(self, attributes: EventAttributes, payload: bytes, now: float) -> Event:
        event = self.make_event_at(self._session, self._sequence + 1, get_ms(now), attributes, payload)
        self._sequence += 1
        return event

    def make_event_at(
        self, session: int, sequence: int, born_ms: int, attributes: EventAttributes, payload: bytes
    ) -> Event:
        """With a place that the caller has chosen; made twice of the same values it is the same event."""
        verify_publishable(attributes, payload)
        event_id = EventId(self._seat.contact.public_key, session, sequence)
        return sign_event(self._seat.signer, Event(event_id, born_ms, attributes, payload))

    def publish(self, event: Event, now: float) -> None:
        if len(self.outgoing) >= UNACCEPTED_MAX:
            message = f"`{UNACCEPTED_MAX}` events are not yet accepted by their rendezvous"
            raise Unavailable(Reason.NOT_YET, message, hint="publish again when some have been")
        keys = sorted(compute_key(name) for name in event.attributes.by_name)
        if self._seat.settings.reliable:
            self.outgoing[event.id] = Outgoing(event, set(keys))
            self._seat.timers.set(now + self._seat.settings.resend_s, partial(self._resend, event.id))
        for key in keys:
            self._rendezvous.forward(Publish(event, key, self._seat.contact), now)

    def _resend(self, event_id: EventId, now: float) -> None:
        entry = self.outgoing.get(event_id)
        if entry is None:
            return
        entry.attempts += 1
        if entry.attempts > self._seat.settings.resends_max:
            del self.outgoing[event_id]
            self._seat.outbox.append(Abandon(event_id))
            return
        for key in sorted(entry.keys):
            self._rendezvous.forward(Publish(entry.event, key, self._seat.contact), now)
        self._seat.timers.set(now + self._seat.settings.resend_s, partial(self._resend, event_id))

    def accept(self, sender: Contact, message: Accepted) -> None:
        """Believed only from a peer at least as close to the key as the closest that we know."""
        entry = self.outgoing.get(message.event_id)
        if entry is None:
            return
        hop = self._seat.table.find_next_hop(message.key) or self._seat.contact
        if sender.position ^ message.key > hop.position ^ message.key:
            self._seat.counts["forged"] += 1
            return
        entry.keys.discard(message.key)
        if not entry.keys:
            del self.outgoing[message.event_id]
            self._seat.outbox.append(Settle(message.event_id))


def verify_publishable(attributes: EventAttributes, payload: bytes) -> None:
    if not 0 < len(attributes.items) <= ATTRIBUTES_MAX:
        message = f"the event has `{len(attributes.items)}` attributes"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint=f"give it at least one and at most `{ATTRIBUTES_MAX}`")
    if len(payload) > PAYLOAD_BYTES_MAX:
        message = f"the payload has `{len(payload)}` bytes, more than `{PAYLOAD_BYTES_MAX}`"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="publish where to fetch it, e.g. its CID")

"""What reaches this peer's user: the events that one of its subscriptions asks for, each once."""

from proofcast.overlay.outputs import Deliver, Store
from proofcast.overlay.records import Event
from proofcast.overlay.seat import Seat
from proofcast.overlay.seen import Seen
from proofcast.overlay.settings import CLOCK_SKEW_S_MAX
from proofcast.routing.predicate import Predicate, matches

SKEW_MS = int(CLOCK_SKEW_S_MAX * 1000)


class Inbox:
    def __init__(self, seat: Seat, seen: Seen) -> None:
        self._seat = seat
        self.seen = seen
        self.wanted: dict[Predicate, int] = {}
        """Subscription to the time in milliseconds from which on its events are wanted."""

    def offer(self, event: Event) -> bool:
        """Deliver it if it is wanted and new."""
        if event.id in self.seen or not any(matches(predicate, event.attributes) for predicate in self.wanted):
            return False
        self._seat.outbox.append(Store(self.seen.add(event.id)))
        self._seat.outbox.append(Deliver(event))
        return True

    def offer_past(self, event: Event) -> bool:
        """The same for an event out of a log, which may be older than the subscription."""
        began = [since for predicate, since in self.wanted.items() if matches(predicate, event.attributes)]
        return bool(began) and event.born_ms >= min(began) - SKEW_MS and self.offer(event)

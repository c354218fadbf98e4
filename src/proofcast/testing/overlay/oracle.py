"""Who should have got what: every event against every subscription, by brute force."""

from collections import Counter
from dataclasses import dataclass, field

from proofcast.overlay.records import EventId
from proofcast.routing.attributes import EventAttributes
from proofcast.routing.predicate import Predicate, matches


@dataclass(slots=True)
class Subscription:
    peer: int
    predicate: Predicate
    asked: float
    active: float | None = None
    """When its path was whole; events published from then on must arrive."""
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Publication:
    event_id: EventId
    time: float
    attributes: EventAttributes
    publisher: int


@dataclass(frozen=True, slots=True)
class Delivery:
    peer: int
    event_id: EventId
    time: float


@dataclass(frozen=True, slots=True)
class Verdict:
    expected: int
    delivered: int
    missing: tuple[tuple[int, EventId], ...]
    twice: int
    unexpected: int

    def __str__(self) -> str:
        return (
            f"expected {self.expected}, delivered {self.delivered}, missing {len(self.missing)},"
            f" twice {self.twice}, unexpected {self.unexpected}"
        )


@dataclass(slots=True)
class Oracle:
    """What was asked, said and heard, in order."""

    subscriptions: list[Subscription] = field(default_factory=list)
    publications: dict[EventId, Publication] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    unaccepted: set[EventId] = field(default_factory=set)
    """Events whose publisher vanished before their rendezvous had accepted them: they may be delivered or not."""
    _of_peer: dict[int, list[Subscription]] = field(default_factory=dict)

    def add(self, subscription: Subscription) -> None:
        self.subscriptions.append(subscription)
        self._of_peer.setdefault(subscription.peer, []).append(subscription)

    def activate(self, peer: int, predicate: Predicate, now: float) -> None:
        for subscription in self._of_peer.get(peer, ()):
            if subscription.predicate == predicate and subscription.active is None:
                subscription.active = now

    def end(self, peer: int, predicate: Predicate, now: float) -> None:
        for subscription in self._of_peer.get(peer, ()):
            if subscription.predicate == predicate and subscription.ended is None:
                subscription.ended = now

    def compute_expected(self, present: set[int]) -> set[tuple[int, EventId]]:
        """(peer, event) for the peers that are there, where a subscription was active all the time."""
        wanted: dict[Predicate, list[Subscription]] = {}
        for subscription in self.subscriptions:
            if subscription.active is not None and subscription.ended is None and subscription.peer in present:
                wanted.setdefault(subscription.predicate, []).append(subscription)
        return {
            (subscription.peer, publication.event_id)
            for publication in self.publications.values()
            if publication.event_id not in self.unaccepted
            for predicate, subscriptions in wanted.items()
            if matches(predicate, publication.attributes)
            for subscription in subscriptions
            if subscription.active is not None and publication.time >= subscription.active
        }

    def is_allowed(self, delivery: Delivery) -> bool:
        publication = self.publications.get(delivery.event_id)
        return publication is not None and any(
            matches(subscription.predicate, publication.attributes)
            for subscription in self._of_peer.get(delivery.peer, ())
        )

    def judge(self, present: set[int]) -> Verdict:
        expected = self.compute_expected(present)
        counts = Counter((delivery.peer, delivery.event_id) for delivery in self.deliveries)
        twice = sum(count - 1 for count in counts.values())
        unexpected = sum(not self.is_allowed(delivery) for delivery in self.deliveries)
        missing = tuple(sorted(expected - counts.keys()))
        return Verdict(len(expected), len(counts), missing, twice, unexpected)

"""The matching index: subscriptions in, the ids of those that an event matches out, exactly.

What an engine can compare (topic words, ranges, a single word) it compares. A subscription that demands more (sets,
prefixes, `N`, numbers that a double does not hold) is given to the engine as the part it can compare, and those that
remain are asked by `matches` itself.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence

from proofcast.errors import InvalidRequest, Reason
from proofcast.routing.attributes import EventAttributes
from proofcast.routing.boxes import Engine
from proofcast.routing.encoding import BoxEncoder, Vocabulary, encode_events
from proofcast.routing.kernel import make_engine
from proofcast.routing.predicate import Predicate, matches

ID_MAX = 2**32 - 1
"""Of a subscription: engines store it in 32 bits."""


class MatchingIndex:
    """Subscriptions by id, added and removed at any time, and asked event by event or many at once."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = make_engine() if engine is None else engine
        self.vocabulary = Vocabulary()
        self._partial: dict[int, Predicate] = {}
        """Those of which the engine knows a part only."""

    def __len__(self) -> int:
        return len(self.engine)

    def add(self, subscription: int, predicate: Predicate) -> None:
        self.add_many({subscription: predicate})

    def add_many(self, predicates: Mapping[int, Predicate]) -> None:
        """Add all or, where an id is taken or no id, none."""
        encoder = BoxEncoder(self.vocabulary)
        for subscription, predicate in predicates.items():
            encoder.append(verify_id(subscription), predicate)
        try:
            self.engine.add(encoder.build())
        except ValueError as error:
            raise refuse_subscription(error, "remove it first, or choose another id") from None
        self._partial |= {subscription: predicates[subscription] for subscription in encoder.partial}

    def remove(self, subscription: int) -> None:
        self.remove_many([subscription])

    def remove_many(self, subscriptions: Iterable[int]) -> None:
        """Remove all or, where one is unknown, none."""
        ids = array("I", map(verify_id, subscriptions))
        try:
            self.engine.remove(ids)
        except ValueError as error:
            raise refuse_subscription(error, "remove only what was added") from None
        for subscription in ids:
            self._partial.pop(subscription, None)

    def match(self, event: EventAttributes) -> list[int]:
        """The ids of the subscriptions that the event matches, in order."""
        return self.match_many([event])[0]

    def match_many(self, events: Sequence[EventAttributes]) -> list[list[int]]:
        found = self.engine.match(encode_events(events, self.vocabulary))
        return [self._confirm(found.get_ids(place), event) for place, event in enumerate(events)]

    def _confirm(self, ids: memoryview, event: EventAttributes) -> list[int]:
        candidates = sorted(ids)
        if not self._partial:
            return candidates
        partial = self._partial
        return [number for number in candidates if number not in partial or matches(partial[number], event)]


def verify_id(subscription: int) -> int:
    if not 0 <= subscription <= ID_MAX:
        message = f"`{subscription}` is no id of a subscription"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint=f"choose an integer from 0 to {ID_MAX}")
    return subscription


def refuse_subscription(error: ValueError, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, str(error), hint=hint)

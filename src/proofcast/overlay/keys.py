"""Under which of its attributes' keys a subscription is kept: so that an event comes to this peer along one tree.

An event visits the rendezvous of all its attributes, hence a subscription under any one of its keys gets it. A peer
that stands in a key's tree for others gets that tree's events anyway; its own subscriptions belong there too, or it
would get them twice. So the rules, first to last:

- a key that an overlapping subscription is kept under is the only choice: what matches both then comes once;
- a key whose tree this peer is part of goes before others, and among equals the nearest;
- when a child comes under a key, own subscriptions move there from trees in which this peer stands for itself alone;
- a subscription moves once between two refreshes, so that neighbours cannot send each other round in circles.
"""

from proofcast.errors import InvalidRequest, Reason
from proofcast.overlay.identity import compute_key
from proofcast.overlay.seat import Seat
from proofcast.overlay.statements import Statements
from proofcast.overlay.trunks import Trunks
from proofcast.routing.constraint import Not
from proofcast.routing.predicate import Predicate, overlaps


class Keys:
    def __init__(self, seat: Seat, statements: Statements, trunks: Trunks) -> None:
        self._seat = seat
        self._statements = statements
        self._trunks = trunks
        self._moved: set[Predicate] = set()

    def choose(self, predicate: Predicate) -> int:
        """The key of a new subscription."""
        keys = find_keys(predicate)
        if not keys:
            message = f"`{predicate}` demands no attribute, only the absence of some"
            raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="add an attribute that the events carry")
        own = self._trunks.own.items()
        shared = [key for other, key in own if key in keys and overlaps(predicate, other)]
        joined = [key for key in shared or keys if key in self._trunks.trunks or self._seat.is_rendezvous(key)]
        return min(joined or shared or keys, key=lambda key: key ^ self._seat.position)

    def gather(self, target: int, now: float) -> list[int]:
        """Move to a key under which there are children what can be kept there; returns it where something moves."""
        if not self._statements.get_children(target):
            return []
        found = [key for key in set(self._trunks.own.values()) - {target} if self._can_move(key, target)]
        for key in sorted(found):
            predicates = tuple(self._trunks.get_own(key))
            self._moved.update(predicates)
            self._trunks.move(predicates, key, target, now)
        return [target] if found else []

    def _can_move(self, key: int, target: int) -> bool:
        """All that is kept under a key or nothing, because it may overlap; and not away from children."""
        predicates = self._trunks.get_own(key)
        return not self._statements.get_children(key) and all(
            target in find_keys(predicate) and predicate not in self._moved for predicate in predicates
        )

    def refresh(self) -> None:
        self._moved = set(self._trunks.moving)


def find_keys(predicate: Predicate) -> list[int]:
    """The keys under which a subscription may be kept: those of the attributes that every matching event carries."""
    return [compute_key(name) for name, demand in predicate.constraints if not isinstance(demand, Not)]

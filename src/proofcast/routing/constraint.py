"""What a predicate demands of one attribute, and how two such demands relate.

| constraint | text | satisfied when the event |
|---|---|---|
| `Topic` | `surf T` | carries the topic word `surf` |
| `Interval` | `price R 1000 1500` | gives `price` a value, or an interval, inside the range |
| `OneOf` | `colour S blue red` | gives `colour` one of the values |
| `Prefix` | `city P san` | gives `city` a word that begins so |
| `Not` | `price N R 10 20` | does not satisfy what follows the `N`; so an event without `price` does |

An event gives a name at most one value, so constraints of different kinds on one name exclude each other.

`implies` and `overlaps` are exact: they decide for all possible events. Every demand but `Not` is satisfied by some
event and refused by one without the attribute; the rules for `Not` follow from that.
"""

from dataclasses import dataclass

from proofcast.routing.value import Interval, Value, refuse_value

VALUES_MAX = 64
"""Values of one set: a set is compared with others member by member."""


@dataclass(frozen=True, slots=True)
class Topic:
    """The event carries this name as a topic word."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """A finite set of points and words; a single point is an `Interval` instead, so that equal demands are equal."""

    values: frozenset[Value]

    def __post_init__(self) -> None:
        if len(self.values) > VALUES_MAX:
            raise refuse_value(f"a set has `{len(self.values)}` values", f"write at most `{VALUES_MAX}`")
        assert self.values, "a set has a value"
        assert all(isinstance(value, str) or value.is_point for value in self.values), "members are words or points"


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first characters of a word."""

    start: str


Positive = Topic | Interval | OneOf | Prefix


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a demand; of an opposite it is the demand itself, which the text does not write."""

    demand: Positive


Constraint = Positive | Not
Held = Topic | Value
"""What an event holds under one name: the fact that it carries the topic word, or a value."""


def make_set(values: frozenset[Value]) -> OneOf | Interval:
    """The canonical constraint for a set of values."""
    only = next(iter(values)) if len(values) == 1 else None
    return only if isinstance(only, Interval) else OneOf(values)


def is_satisfied(constraint: Constraint, held: Held | None) -> bool:
    """Whether an event that holds this (None: nothing) under the constraint's name satisfies it."""
    if isinstance(constraint, Not):
        return not is_satisfied(constraint.demand, held)
    return held is not None and holds(constraint, held)


def holds(demand: Positive, held: Held) -> bool:
    match demand:
        case Topic():
            return isinstance(held, Topic)
        case Interval():
            return isinstance(held, Interval) and demand.contains(held)
        case OneOf():
            return held in demand.values
        case Prefix():
            return isinstance(held, str) and held.startswith(demand.start)


def implies(narrow: Constraint, wide: Constraint) -> bool:
    """Whether everything that satisfies `narrow` satisfies `wide`."""
    match narrow, wide:
        case Not(), Not():
            return implies(wide.demand, narrow.demand)
        case Not(), _:
            return False  # an event without the attribute satisfies `narrow` alone
        case _, Not():
            return not overlaps(narrow, wide.demand)
        case OneOf(), _:
            return all(holds(wide, value) for value in narrow.values)
        case Prefix(), Prefix():
            return narrow.start.startswith(wide.start)
        case ((Topic() | Interval()), _):
            return holds(wide, narrow)
    return False  # infinitely many words have the prefix


def overlaps(one: Constraint, other: Constraint) -> bool:
    """Whether something satisfies both."""
    match one, other:
        case Not(), Not():
            return True  # an event without the attribute
        case Not(), _:
            return not implies(other, one.demand)
        case _, Not():
            return not implies(one, other.demand)
        case OneOf(), _:
            return any(holds(other, value) for value in one.values)
        case _, OneOf():
            return any(holds(one, value) for value in other.values)
        case Interval(), Interval():
            return one.intersects(other)
        case Prefix(), Prefix():
            return one.start.startswith(other.start) or other.start.startswith(one.start)
    return isinstance(one, Topic) and isinstance(other, Topic)


def unite(one: Constraint, other: Constraint) -> Constraint | None:
    """The constraint that any value satisfies exactly if it satisfies one of the two; None where there is none."""
    if implies(one, other):
        return other
    if implies(other, one):
        return one
    match one, other:
        case Interval(), Interval() if one.intersects(other):
            return one.hull(other)
        case ((OneOf() | Interval()), (OneOf() | Interval())):
            return unite_sets(one, other)
    return None


def unite_sets(one: OneOf | Interval, other: OneOf | Interval) -> OneOf | None:
    """One set where both are sets or points and the set is not too large."""
    values = get_members(one) | get_members(other)
    return OneOf(values) if get_members(one) and get_members(other) and len(values) <= VALUES_MAX else None


def get_members(constraint: OneOf | Interval) -> frozenset[Value]:
    """All the values that satisfy it, or none where they cannot be counted."""
    if isinstance(constraint, OneOf):
        return constraint.values
    return frozenset([constraint]) if constraint.is_point else frozenset()

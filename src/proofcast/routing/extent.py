"""How much a demand lets through, where that can be measured: the length of a range, the number of values of a set."""

from collections.abc import Iterable
from decimal import Decimal
from math import prod

from proofcast.routing.constraint import VALUES_MAX, Constraint, OneOf
from proofcast.routing.value import Interval

Pair = tuple[Constraint, Constraint]


def find_hull(one: Constraint, other: Constraint) -> Constraint | None:
    """The narrowest measurable demand that both imply."""
    match one, other:
        case Interval(), Interval() if one.scale == other.scale and one.is_closed and other.is_closed:
            return one.hull(other)
        case OneOf(), OneOf() if len(one.values | other.values) <= VALUES_MAX:
            return OneOf(one.values | other.values)
    return None


def measure(constraint: Constraint) -> Decimal:
    match constraint:
        case Interval(Decimal() as low, Decimal() as high):
            return high - low
        case OneOf(values):
            return Decimal(len(values))
    raise AssertionError(f"{constraint} has no measure")


def measure_shared(one: Constraint, other: Constraint) -> Decimal:
    match one, other:
        case Interval(Decimal() as low, Decimal() as high), Interval(Decimal() as other_low, Decimal() as other_high):
            return max(Decimal(0), min(high, other_high) - max(low, other_low))
        case OneOf(values), OneOf(other_values):
            return Decimal(len(values & other_values))
    raise AssertionError(f"{one} and {other} share no measure")


def compute_volume_together(pairs: Iterable[Pair]) -> Decimal:
    """The volume of two boxes taken together, side by side of each attribute."""
    sides = list(pairs)
    one = prod((measure(one) for one, _ in sides), start=Decimal(1))
    other = prod((measure(other) for _, other in sides), start=Decimal(1))
    return one + other - prod((measure_shared(*side) for side in sides), start=Decimal(1))

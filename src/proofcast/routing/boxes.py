"""Predicates and events as plain columns of numbers, which is what the matching engines work on.

A *box* is a subscription: tokens that the event must carry, and closed ranges that its values must lie in. A *token*
stands for a topic word, or for one word as the value of one name. Columns are buffers of 32-bit integers and doubles
(`array`, NumPy and Arrow make them); `starts` say where the part of each subscription or event begins in a column, with
one more entry for the end.

Numbers become doubles without changing any answer. Numbers of 15 digits and integers up to 2^53 are *exact*: no two of
them share a double. Any other number of an event becomes the pair of doubles that lie to exact numbers as it does. A
range with other ends is made a little wider, and its predicate has to be asked again.
"""

import math
from array import array
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeAlias

DIGITS_EXACT = 15
"""Decimals of so many digits are all distinct as doubles."""
INTEGER_EXACT = 2**53
"""Integers up to here are doubles."""

Integers: TypeAlias = "array[int] | memoryview"
"""A buffer of unsigned 32-bit integers."""
Doubles: TypeAlias = "array[float] | memoryview"


@dataclass(frozen=True, slots=True)
class Boxes:
    """Subscriptions to be added."""

    ids: Integers
    token_starts: Integers
    tokens: Integers
    range_starts: Integers
    attributes: Integers
    lows: Doubles
    highs: Doubles


@dataclass(frozen=True, slots=True)
class Rows:
    """Events: for each a row of values, one per attribute, not a number where it has none."""

    attributes: Integers
    lows: Doubles
    highs: Doubles
    """Empty where every value is a point."""
    token_starts: Integers
    tokens: Integers


@dataclass(frozen=True, slots=True)
class Matches:
    """The ids found, event after event and in no order inside an event."""

    starts: memoryview
    ids: memoryview

    def get_ids(self, event: int) -> memoryview:
        return self.ids[self.starts[event] : self.starts[event + 1]]


class Engine(Protocol):
    """Holds boxes and finds those around an event; the compiled kernel and its definition in Python are two."""

    def __len__(self) -> int: ...

    def add(self, boxes: Boxes) -> None:
        """Add all or, with a ValueError, none."""

    def remove(self, ids: Integers) -> None:
        """Remove all or, with a ValueError, none."""

    def match(self, rows: Rows) -> Matches: ...


def is_exact(number: Decimal) -> bool:
    """Whether no other exact number has the same double."""
    digits = number.as_tuple().digits
    if len(digits) <= DIGITS_EXACT or not any(digits[DIGITS_EXACT:]):
        return True
    return abs(number) <= INTEGER_EXACT and number == int(number)


def find_exact(double: float) -> Decimal | None:
    """The exact number with this double, if there is one."""
    shortest = Decimal(f"{double:.{DIGITS_EXACT}g}")
    if float(shortest) == double:
        return shortest
    return Decimal(int(double)) if abs(double) <= INTEGER_EXACT and double.is_integer() else None


def encode_value(low: Decimal, high: Decimal) -> tuple[float, float]:
    """The ends of an event's interval as doubles that every exact number compares with as with the ends themselves."""
    below, above = float(low), float(high)
    if not is_exact(low) and (exact := find_exact(below)) is not None and exact > low:
        below = math.nextafter(below, -math.inf)
    if not is_exact(high) and (exact := find_exact(above)) is not None and exact < high:
        above = math.nextafter(above, math.inf)
    return below, above


def encode_range(low: Decimal | None, high: Decimal | None) -> tuple[float, float, bool]:
    """The ends of a range as doubles, and whether they say everything; else they are further apart."""
    below, above = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    low_exact, high_exact = low is None or is_exact(low), high is None or is_exact(high)
    return (
        below if low_exact else math.nextafter(below, -math.inf),
        above if high_exact else math.nextafter(above, math.inf),
        low_exact and high_exact,
    )

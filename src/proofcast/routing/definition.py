"""The matching engine as it is defined: every box is compared with every event that carries one of its tokens.

It serves where the compiled kernel is not built, and is what the kernel's answers are tested against.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from proofcast.routing.boxes import Boxes, Integers, Matches, Rows


@dataclass(frozen=True, slots=True)
class Box:
    tokens: frozenset[int]
    ranges: tuple[tuple[int, float, float], ...]
    """Attribute, lower and upper end."""

    @property
    def group(self) -> int | None:
        """The token by which it is found; None where it demands none."""
        return min(self.tokens, default=None)


@dataclass(frozen=True, slots=True)
class Point:
    """One event: its tokens, and both ends of each value it has."""

    tokens: frozenset[int]
    values: dict[int, tuple[float, float]]


class DefinedEngine:
    def __init__(self) -> None:
        self._boxes: dict[int, Box] = {}
        self._groups: dict[int | None, set[int]] = {}

    def __len__(self) -> int:
        return len(self._boxes)

    def add(self, boxes: Boxes) -> None:
        fresh: dict[int, Box] = {}
        for place, subscription in enumerate(boxes.ids):
            if subscription in self._boxes or subscription in fresh:
                raise ValueError(f"subscription `{subscription}` is there already")
            fresh[subscription] = read_box(boxes, place)
        for subscription, box in fresh.items():
            self._groups.setdefault(box.group, set()).add(subscription)
        self._boxes |= fresh

    def remove(self, ids: Integers) -> None:
        gone: set[int] = set()
        for subscription in ids:
            if subscription not in self._boxes or subscription in gone:
                raise ValueError(f"subscription `{subscription}` is not there")
            gone.add(subscription)
        for subscription in gone:
            self._groups[self._boxes.pop(subscription).group].discard(subscription)

    def match(self, rows: Rows) -> Matches:
        starts, ids = array("I", [0]), array("I")
        for place in range(len(rows.token_starts) - 1):
            ids.extend(self._find(read_point(rows, place)))
            starts.append(len(ids))
        return Matches(memoryview(starts), memoryview(ids))

    def _find(self, point: Point) -> Iterator[int]:
        for group in (None, *point.tokens):
            for subscription in self._groups.get(group, ()):
                if is_around(self._boxes[subscription], point):
                    yield subscription


def is_around(box: Box, point: Point) -> bool:
    return box.tokens <= point.tokens and all(
        attribute in point.values and low <= point.values[attribute][0] and point.values[attribute][1] <= high
        for attribute, low, high in box.ranges
    )


def read_box(boxes: Boxes, place: int) -> Box:
    tokens = boxes.tokens[boxes.token_starts[place] : boxes.token_starts[place + 1]]
    parts = range(boxes.range_starts[place], boxes.range_starts[place + 1])
    return Box(
        frozenset(tokens), tuple((boxes.attributes[part], boxes.lows[part], boxes.highs[part]) for part in parts)
    )


def read_point(rows: Rows, place: int) -> Point:
    width = len(rows.attributes)
    row = slice(place * width, (place + 1) * width)
    lows: Iterable[float] = rows.lows[row]
    highs: Iterable[float] = rows.highs[row] if len(rows.highs) else rows.lows[row]
    values = {
        attribute: (low, high)
        for attribute, low, high in zip(rows.attributes, lows, highs, strict=True)
        if low == low  # not a number differs from itself
    }
    return Point(frozenset(rows.tokens[rows.token_starts[place] : rows.token_starts[place + 1]]), values)

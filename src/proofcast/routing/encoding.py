"""Predicates as boxes and events as rows: names and words become the numbers that an engine knows them by."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from proofcast.errors import InvalidRequest, Reason
from proofcast.routing.attributes import EventAttributes
from proofcast.routing.boxes import Boxes, Rows, encode_range, encode_value
from proofcast.routing.constraint import Constraint, OneOf, Topic
from proofcast.routing.predicate import Predicate
from proofcast.routing.value import Interval, Scale

ATTRIBUTES_MAX = 65_534
"""Names with ranges in one index: engines number them in 16 bits."""

Token = tuple[str, str | None]
"""A name and its word; None for a topic word."""


@dataclass(slots=True)
class Vocabulary:
    """The numbers under which an engine knows names and words."""

    attributes: dict[tuple[str, Scale], int] = field(default_factory=dict)
    tokens: dict[Token, int] = field(default_factory=dict)

    def get_attribute(self, name: str, scale: Scale = Scale.NUMBER) -> int:
        """The number of a name, given now if it has none."""
        number = self.attributes.setdefault((name, scale), len(self.attributes))
        if number >= ATTRIBUTES_MAX:
            del self.attributes[name, scale]
            message = f"`{name}` would be attribute `{ATTRIBUTES_MAX + 1}` of the index"
            raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="use a second index")
        return number

    def get_token(self, name: str, word: str | None = None) -> int:
        return self.tokens.setdefault((name, word), len(self.tokens))


class BoxEncoder:
    """Collects predicates as boxes; `partial` are the ids of which a box does not say everything."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.partial: list[int] = []
        self._vocabulary = vocabulary
        self._ids = array("I")
        self._token_starts, self._tokens = array("I", [0]), array("I")
        self._range_starts, self._attributes = array("I", [0]), array("I")
        self._lows, self._highs = array("d"), array("d")

    def build(self) -> Boxes:
        tokens, ranges = (self._token_starts, self._tokens), (self._range_starts, self._attributes)
        return Boxes(self._ids, *tokens, *ranges, self._lows, self._highs)

    def append(self, subscription: int, predicate: Predicate) -> None:
        complete = [self._append_constraint(name, demand) for name, demand in predicate.constraints]
        if not all(complete):
            self.partial.append(subscription)
        self._ids.append(subscription)
        self._token_starts.append(len(self._tokens))
        self._range_starts.append(len(self._attributes))

    def _append_constraint(self, name: str, constraint: Constraint) -> bool:
        """Whether what was appended says everything."""
        match constraint:
            case Topic():
                return self._append_token(name, None)
            case Interval():
                return self._append_range(name, constraint)
            case OneOf(values) if len(values) == 1:
                return self._append_token(name, str(next(iter(values))))
            case OneOf(values):
                return self._append_hull(name, [value for value in values if isinstance(value, Interval)], len(values))
        return False

    def _append_token(self, name: str, word: str | None) -> bool:
        self._tokens.append(self._vocabulary.get_token(name, word))
        return True

    def _append_range(self, name: str, interval: Interval) -> bool:
        low, high, is_complete = encode_range(interval.low, interval.high)
        self._attributes.append(self._vocabulary.get_attribute(name, interval.scale))
        self._lows.append(low)
        self._highs.append(high)
        return is_complete

    def _append_hull(self, name: str, points: list[Interval], members: int) -> bool:
        """Of a set of points of one scale, the range that they lie in."""
        if len(points) == members and len({point.scale for point in points}) == 1:
            hull = points[0]
            for point in points:
                hull = hull.hull(point)
            self._append_range(name, hull)
        return False


Cell = tuple[int, float, float]
"""Attribute, lower and upper end."""


def encode_events(events: Sequence[EventAttributes], vocabulary: Vocabulary) -> Rows:
    """The events as rows over those of their attributes that some subscription has named."""
    cells = [list_cells(event, vocabulary) for event in events]
    attributes = sorted({attribute for row in cells for attribute, _, _ in row})
    places = {attribute: place for place, attribute in enumerate(attributes)}
    lows = array("d", [math.nan]) * (len(events) * len(attributes))
    highs = array("d", lows)
    for number, row in enumerate(cells):
        for attribute, low, high in row:
            place = number * len(attributes) + places[attribute]
            lows[place], highs[place] = low, high
    are_points = all(low == high for row in cells for _, low, high in row)
    starts, tokens = array("I", [0]), array("I")
    for event in events:
        tokens.extend(list_tokens(event, vocabulary))
        starts.append(len(tokens))
    return Rows(array("I", attributes), lows, array("d") if are_points else highs, starts, tokens)


def list_cells(event: EventAttributes, vocabulary: Vocabulary) -> list[Cell]:
    return [
        (vocabulary.attributes[name, held.scale], *encode_value(held.low, held.high))
        for name, held in event.items
        if isinstance(held, Interval) and (name, held.scale) in vocabulary.attributes
        if held.low is not None and held.high is not None
    ]


def list_tokens(event: EventAttributes, vocabulary: Vocabulary) -> list[int]:
    """The numbers of its topic words and words that some subscription has named."""
    facts = [(name, held) for name, held in event.items if not isinstance(held, Interval)]
    carried = [(name, held if isinstance(held, str) else None) for name, held in facts]
    return [vocabulary.tokens[token] for token in carried if token in vocabulary.tokens]

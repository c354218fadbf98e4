"""What an event says about itself: topic words, and names with a value or an interval.

As text `surf T/colour V blue/price V 1050/day R 2026-11-16 2026-11-18`; `price R 1050 1050` is the same as
`price V 1050`. As JSON `{"surf": true, "colour": "blue", "price": 1050, "day": ["2026-11-16", "2026-11-18"]}`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal

from proofcast.errors import InvalidRequest
from proofcast.routing.constraint import Held, Topic
from proofcast.routing.text import format_held, format_word, parse_held, parse_word, refuse_text, split_parts
from proofcast.routing.value import Interval, Value, parse_value, refuse_value, verify_word

EVENT_ATTRIBUTES_MAX = 64
"""Attributes of one event: every node on its way looks at each."""

Json = None | bool | int | float | Decimal | str | Sequence["Json"] | Mapping[str, "Json"]
"""A parsed JSON value; parse with `parse_float=Decimal` to keep decimals exact."""


@dataclass(frozen=True, slots=True)
class EventAttributes:
    """A name has at most one value; the order is that of the names."""

    items: tuple[tuple[str, Held], ...]
    by_name: Mapping[str, Held] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        by_name = dict(self.items)
        if len(by_name) != len(self.items):
            raise refuse_value("an event names an attribute twice", "give each name one value")
        if len(by_name) > EVENT_ATTRIBUTES_MAX:
            hint = f"send at most `{EVENT_ATTRIBUTES_MAX}`"
            raise refuse_value(f"an event has `{len(by_name)}` attributes", hint)
        object.__setattr__(self, "items", tuple(sorted(self.items, key=lambda item: item[0])))
        object.__setattr__(self, "by_name", by_name)

    def __str__(self) -> str:
        return format_attributes(self)


def parse_attributes(text: str) -> EventAttributes:
    """Read an event's text; the empty text is an event without attributes."""
    items: dict[str, Held] = {}
    for name_token, letter, *arguments in split_parts(text) if text.strip() else ():
        name = parse_word(name_token)
        if name in items:
            raise refuse_text(name_token.position, f"`{name}` is named twice", "give each name one value")
        items[name] = parse_held(letter, arguments)
    return EventAttributes(tuple(items.items()))


def format_attributes(attributes: EventAttributes) -> str:
    """The canonical text: names in order."""
    return "/".join(f"{format_word(name)} {format_held(held)}" for name, held in attributes.items)


def parse_json_attributes(record: Mapping[str, Json]) -> EventAttributes:
    """Read a JSON object: `true` is a topic word, a list of two an interval, an inner object gives names with dots.

    `false`, `null` and the empty text say nothing; a text is a number, a date or a word, whichever it looks like.
    """
    return EventAttributes(tuple(iterate_json(record, "")))


def read_fields(words: Iterable[str], fields: Mapping[str, str]) -> EventAttributes:
    """Of what a ledger's event says: its topic words, and its fields as text; as in JSON `true` is a topic word.

    What no predicate can name (empty, too long, not to be printed, `false`, more than the limit) is left out: whoever
    emitted the event was free to write it.
    """
    items: dict[str, Held] = {}
    for name, text in [*((word, "true") for word in words), *fields.items()]:
        if text != "false" and len(items) < EVENT_ATTRIBUTES_MAX:
            with suppress(InvalidRequest):
                items[verify_word(name)] = Topic() if text == "true" else parse_value(text)
    return EventAttributes(tuple(items.items()))


def iterate_json(record: Mapping[str, Json], prefix: str) -> Iterator[tuple[str, Held]]:
    for key, value in record.items():
        name = verify_word(f"{prefix}{key}")
        if isinstance(value, Mapping):
            yield from iterate_json(value, f"{name}.")
        elif value is not None and value is not False and value != "":
            yield name, parse_json_value(name, value)


def parse_json_value(name: str, value: Json) -> Held:
    if value is True:
        return Topic()
    if isinstance(value, str | int | float | Decimal):
        return parse_scalar(name, value)
    if isinstance(value, Sequence) and len(value) == 2:
        return parse_pair(name, value[0], value[1])
    raise refuse_value(f"`{name}` holds `{value!r:.40}`", "give it a number, a text, `true` or a list of two ends")


def parse_scalar(name: str, value: str | float | Decimal) -> Value:
    """A float is taken as the shortest decimal that prints it."""
    if isinstance(value, str):
        return parse_value(value)
    number = Decimal(str(value))
    if not number.is_finite() or abs(number.adjusted()) > 120:
        raise refuse_value(f"`{name}` holds `{value}`", "give it a finite number of ordinary size")
    return parse_value(f"{number:f}")


def parse_pair(name: str, low: Json, high: Json) -> Interval:
    ends = [parse_scalar(name, end) for end in (low, high) if isinstance(end, str | int | float | Decimal)]
    points = [end for end in ends if isinstance(end, Interval)]
    if len(points) != 2 or points[0].scale != points[1].scale:
        raise refuse_value(f"`{name}` holds a list of `{low}` and `{high}`", "give it two numbers or two dates")
    return Interval(points[0].low, points[1].high, points[0].scale)

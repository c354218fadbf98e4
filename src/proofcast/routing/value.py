"""Values of attributes: numbers, instants and words, and the one rule that tells which of them a text is.

A value is what it looks like. `-12.50` is a number, `2026-11-16` and `2026-11-16T10:00:00Z` are instants, everything
else is a word. Numbers are exact decimals of up to `DIGITS_MAX` digits, so that an amount of wei is as good a number as
a temperature. A number and an instant are never compared with each other.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from proofcast.errors import InvalidRequest, Reason

DIGITS_MAX = 128
"""Digits of a number: a 256-bit integer has 78, and no text may cost unbounded arithmetic."""
WORD_CHARACTERS_MAX = 256
"""Characters of a name or word: what every peer on a route has to store."""

NUMBER_FORM = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)
INSTANT_FORM = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2}))?", re.ASCII
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Scale(StrEnum):
    """What the points of an interval are; points of different scales are never compared."""

    NUMBER = "number"
    INSTANT = "instant"


@dataclass(frozen=True, slots=True)
class Interval:
    """Every point from `low` to `high`, both included. Of an instant the point is in microseconds since 1970."""

    low: Decimal | None
    """None: without lower end."""
    high: Decimal | None
    """None: without upper end."""
    scale: Scale = Scale.NUMBER

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and self.low > self.high:
            low, high = format_point(self.low, self.scale), format_point(self.high, self.scale)
            raise refuse_value(f"the range from `{low}` to `{high}` is empty", "write the lower end first")

    @property
    def is_closed(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def is_point(self) -> bool:
        return self.low is not None and self.low == self.high

    def contains(self, other: "Interval") -> bool:
        return (
            self.scale == other.scale
            and (self.low is None or (other.low is not None and self.low <= other.low))
            and (self.high is None or (other.high is not None and other.high <= self.high))
        )

    def intersects(self, other: "Interval") -> bool:
        """Whether some point is in both; intervals that touch share one."""
        return (
            self.scale == other.scale
            and (self.low is None or other.high is None or self.low <= other.high)
            and (self.high is None or other.low is None or other.low <= self.high)
        )

    def hull(self, other: "Interval") -> "Interval":
        """The smallest interval that contains both, which must be of one scale."""
        assert self.scale == other.scale, "points of different scales have no hull"
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return Interval(low, high, self.scale)


Value = Interval | str
"""What an event's attribute holds: a word, or an interval, which is a point where its ends are equal."""


def refuse_value(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)


def parse_value(text: str) -> Value:
    """The number, instant or word that `text` looks like."""
    if NUMBER_FORM.fullmatch(text):
        return make_point(parse_number(text))
    if INSTANT_FORM.fullmatch(text):
        return make_point(Decimal(parse_instant(text)), Scale.INSTANT)
    return verify_word(text)


def make_point(point: Decimal, scale: Scale = Scale.NUMBER) -> Interval:
    return Interval(point, point, scale)


def parse_number(text: str) -> Decimal:
    if len(text) > DIGITS_MAX:
        raise refuse_value(f"`{text[:20]}...` has more than `{DIGITS_MAX}` digits", "round the number")
    number = Decimal(text)
    return number if number else Decimal(0)


def parse_instant(text: str) -> int:
    """Microseconds since 1970; a date alone is its midnight in UTC."""
    try:
        moment = datetime.fromisoformat(text if "T" in text else f"{text}T00:00:00Z")
        return (moment.astimezone(UTC) - EPOCH) // MICROSECOND
    except (ValueError, OverflowError):
        raise refuse_value(f"`{text}` is no date of the calendar", "write e.g. `2026-11-16T10:00:00Z`") from None


def verify_word(word: str) -> str:
    """A word, name or topic: some text without control characters, of bounded length."""
    if not word:
        raise refuse_value("a word is empty", "write at least one character")
    if len(word) > WORD_CHARACTERS_MAX:
        raise refuse_value(f"`{word[:20]}...` has more than `{WORD_CHARACTERS_MAX}` characters", "write a shorter word")
    if not word.replace(" ", "x").isprintable():
        raise refuse_value(f"`{word!a}` has a character that cannot be printed", "leave it out")
    return word


def format_value(value: Value) -> str:
    """The text of a word or point; `parse_value` gives the same value back."""
    if isinstance(value, str):
        return value
    assert value.is_point, "an interval is written as two ends"
    return format_point(value.low, value.scale)


def format_point(point: Decimal | None, scale: Scale) -> str:
    """The shortest text of a point; `*` for an open end."""
    if point is None:
        return "*"
    return format_number(point) if scale is Scale.NUMBER else format_instant(int(point))


def format_number(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_instant(microseconds: int) -> str:
    moment = EPOCH + microseconds * MICROSECOND
    if microseconds % (24 * 3600 * 10**6) == 0:
        return f"{moment:%Y-%m-%d}".rjust(10, "0")
    fraction = f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + "Z"

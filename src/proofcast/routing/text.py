"""The text of constraints and values, read and written part by part: `surf T/bali T/price R 1000 1500`.

Parts are separated by `/`, the tokens of a part by blanks: a name, a letter, its arguments. Inside a name or word a
blank, `/` and `%` are written `%20`, `%2F` and `%25` and nothing else is escaped, so that every text has one meaning
and every meaning one text. Errors name the position, counted in characters from 1.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from proofcast.errors import InvalidRequest, Reason
from proofcast.routing.constraint import Constraint, Held, Not, OneOf, Positive, Prefix, Topic, make_set
from proofcast.routing.value import Interval, Value, format_point, format_value, parse_value, verify_word

TEXT_CHARACTERS_MAX = 65_536
"""Characters of one text: nobody makes us read more before we may refuse it."""
CHARACTER_BY_ESCAPE = {"%20": " ", "%2F": "/", "%25": "%"}
ESCAPE_BY_CHARACTER = {character: escape for escape, character in CHARACTER_BY_ESCAPE.items()}
OPEN_END = "*"
LETTERS_HINT = "the letters are `T` topic, `R` range, `S` set, `P` prefix, `N` not; `V` value in events"


@dataclass(frozen=True, slots=True)
class Token:
    position: int
    """Of its first character, from 1."""
    text: str


def refuse_text(position: int, message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, f"{message} (character {position})", hint=hint, have=position)


@contextmanager
def at(token: Token) -> Iterator[None]:
    """Give the refusal of a value the position of its token."""
    try:
        yield
    except InvalidRequest as error:
        raise refuse_text(token.position, str(error), error.hint) from None


def split_parts(text: str) -> Iterator[list[Token]]:
    """The tokens of every part; each part has a name and a letter at least."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise refuse_text(TEXT_CHARACTERS_MAX + 1, f"the text has `{len(text)}` characters", "write a shorter one")
    start = 0
    for part in text.split("/"):
        tokens = [Token(start + found.start() + 1, found[0]) for found in re.finditer(r"[^ ]+", part)]
        if len(tokens) < 2:
            hint = "write a name and a letter, e.g. `surf T` or `price R 1000 1500`"
            raise refuse_text(start + 1, f"`{part.strip()}` is no constraint", hint)
        yield tokens
        start += len(part) + 1


def parse_word(token: Token) -> str:
    """The name or word that a token writes with escapes."""
    if wrong := re.search("%(?!20|2F|25)", token.text):
        hint = "write `%20` for a blank, `%2F` for `/`, `%25` for `%`"
        raise refuse_text(token.position + wrong.start(), f"`{token.text}` has an unknown escape", hint)
    with at(token):
        return verify_word(re.sub("%..", lambda found: CHARACTER_BY_ESCAPE[found[0]], token.text))


def format_word(word: str) -> str:
    return re.sub("[ /%]", lambda found: ESCAPE_BY_CHARACTER[found[0]], word)


# --- what a predicate demands


def parse_constraint(letter: Token, arguments: Sequence[Token]) -> Constraint:
    if letter.text != "N":
        return parse_demand(letter, arguments)
    if not arguments:
        raise refuse_text(letter.position, "`N` negates nothing", "write e.g. `bali N T` or `price N R 10 20`")
    return Not(parse_demand(arguments[0], arguments[1:]))


def parse_demand(letter: Token, arguments: Sequence[Token]) -> Positive:
    match letter.text:
        case "T":
            verify_count(letter, arguments, 0, 0)
            return Topic()
        case "R":
            verify_count(letter, arguments, 2, 2)
            return parse_range(*arguments)
        case "S":
            verify_count(letter, arguments, 1, None)
            return parse_set(arguments)
        case "P":
            verify_count(letter, arguments, 1, 1)
            return Prefix(parse_word(arguments[0]))
    raise refuse_text(letter.position, f"`{letter.text}` is no letter of a constraint", LETTERS_HINT)


def verify_count(letter: Token, arguments: Sequence[Token], least: int, most: int | None) -> None:
    if len(arguments) < least or (most is not None and len(arguments) > most):
        expected = f"{least}" if most == least else f"at least {least}"
        message = f"`{letter.text}` takes {expected} arguments, not `{len(arguments)}`"
        raise refuse_text(letter.position, message, LETTERS_HINT)


def parse_range(low: Token, high: Token) -> Interval:
    ends = [None if token.text == OPEN_END else parse_end(token) for token in (low, high)]
    scales = {end.scale for end in ends if end is not None}
    if len(scales) > 1:
        message = f"a range from `{low.text}` to `{high.text}` mixes numbers and dates"
        raise refuse_text(high.position, message, "write both ends as numbers or both as dates")
    first, last = (None if end is None else end.low for end in ends)
    with at(low):
        return Interval(first, last, scales.pop()) if scales else Interval(None, None)


def parse_end(token: Token) -> Interval:
    with at(token):
        value = parse_value(token.text)
    if isinstance(value, str):
        hint = "write a number, a date such as `2026-11-16` or `2026-11-16T10:00:00Z`, or `*` for no end"
        raise refuse_text(token.position, f"`{token.text}` is no end of a range", hint)
    return value


def parse_set(tokens: Sequence[Token]) -> Interval | OneOf:
    values = frozenset(parse_member(token) for token in tokens)
    with at(tokens[0]):
        return make_set(values)


def parse_member(token: Token) -> Value:
    word = parse_word(token)
    with at(token):
        return parse_value(word)


def format_constraint(constraint: Constraint) -> str:
    match constraint:
        case Topic():
            return "T"
        case Interval(low, high, scale):
            return f"R {format_point(low, scale)} {format_point(high, scale)}"
        case OneOf(values):
            return f"S {' '.join(sorted(format_word(format_value(value)) for value in values))}"
        case Prefix(start):
            return f"P {format_word(start)}"
        case Not(demand):
            return f"N {format_constraint(demand)}"


# --- what an event holds


def parse_held(letter: Token, arguments: Sequence[Token]) -> Held:
    match letter.text:
        case "T":
            verify_count(letter, arguments, 0, 0)
            return Topic()
        case "V":
            verify_count(letter, arguments, 1, 1)
            return parse_member(arguments[0])
        case "R":
            verify_count(letter, arguments, 2, 2)
            return parse_closed(*arguments)
    raise refuse_text(letter.position, f"`{letter.text}` is no letter of an event's attribute", LETTERS_HINT)


def parse_closed(low: Token, high: Token) -> Interval:
    interval = parse_range(low, high)
    if not interval.is_closed:
        raise refuse_text(low.position, "an event's interval has an open end", "write both ends")
    return interval


def format_held(held: Held) -> str:
    if isinstance(held, Topic):
        return "T"
    if isinstance(held, str) or held.is_point:
        return f"V {format_word(format_value(held))}"
    return f"R {format_point(held.low, held.scale)} {format_point(held.high, held.scale)}"

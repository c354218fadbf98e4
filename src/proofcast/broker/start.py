"""Where a subscription begins: the same words at every door, and one default."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from proofcast.cursor import Cursor, parse_cursor
from proofcast.errors import InvalidRequest, Reason

NUMBER = re.compile(r"(block|sequence):(\d{1,18})")
TIME_PREFIX = "time:"


@dataclass(frozen=True, slots=True)
class Oldest:
    """Everything there is, then what comes."""


@dataclass(frozen=True, slots=True)
class Newest:
    """What comes from now on."""


@dataclass(frozen=True, slots=True)
class AtBlock:
    number: int


@dataclass(frozen=True, slots=True)
class AtTime:
    timestamp: int


@dataclass(frozen=True, slots=True)
class AtSequence:
    sequence: int


Start = Oldest | Newest | AtBlock | AtTime | AtSequence | Cursor

DEFAULT = "newest"
"""What nobody is surprised by: a new subscriber is not flooded with years of history unless it asks."""


def parse_start(text: str) -> Start:
    """`oldest`, `newest`, `block:N`, `sequence:N`, `time:2026-01-31T12:00:00Z`, or a cursor."""
    words: dict[str, Start] = {"oldest": Oldest(), "newest": Newest()}
    if text in words:
        return words[text]
    numbered = NUMBER.fullmatch(text)
    if numbered:
        return AtBlock(int(numbered[2])) if numbered[1] == "block" else AtSequence(int(numbered[2]))
    if text.startswith(TIME_PREFIX):
        return AtTime(parse_time(text.removeprefix(TIME_PREFIX)))
    return parse_cursor(text)


def parse_time(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`{ascii(text[:64])[1:-1]}` is no time",
            hint="write it as RFC 3339 does, e.g. `time:2026-01-31T12:00:00Z`",
        ) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())

"""What became of one delivery, the same numbers as the contract's `Outcome`."""

from enum import IntEnum

from proofcast.errors import InvalidInput, Reason


class Outcome(IntEnum):
    NONE = 0
    """Nobody holds this index, or it joined after the event."""
    DELIVERED = 1
    FAILED = 2
    """The callback had its full gas and reverted."""
    UNFUNDED = 3
    PRICE_TOO_HIGH = 4
    NO_CODE = 5
    REMOVED = 6
    DEFERRED = 7
    """Served by a later page."""

    @property
    def words(self) -> str:
        return WORDS[self]


WORDS = {
    Outcome.NONE: "nobody there",
    Outcome.DELIVERED: "delivered",
    Outcome.FAILED: "callback failed",
    Outcome.UNFUNDED: "deposit too small",
    Outcome.PRICE_TOO_HIGH: "price too high",
    Outcome.NO_CODE: "no code",
    Outcome.REMOVED: "removed, deposit below the floor",
    Outcome.DEFERRED: "deferred to a later page",
}


def parse_outcomes(outcomes: bytes) -> tuple[Outcome, ...]:
    """One byte per position."""
    try:
        return tuple(Outcome(number) for number in outcomes)
    except ValueError as error:
        raise InvalidInput(
            Reason.MALFORMED,
            f"`{max(outcomes)}` is no outcome of a delivery",
            hint="check that the address is that of `Topics`, and that this program is as new as the contract",
        ) from error

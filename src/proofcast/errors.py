"""Every error a user can meet, one class per reaction.

ProofcastError
  x InvalidRequest   you asked for something meaningless     -> fix the call
  x InvalidInput     someone sent us something false         -> reject it
    + Misbehaviour   ... and we can prove who did            -> publish the evidence
  x Unavailable      nobody answered, or not yet             -> try again later

The classes marked `x` are disjoint; `reason` tells the cases of one class apart. The message is one sentence that
names the values in backticks (both of them where two disagree); the hint says what to do next. A bug in Proofcast is
an `AssertionError`, which nobody catches.
"""

from enum import StrEnum
from typing import ClassVar


class Reason(StrEnum):
    """What happened, for programs; a member exists where a caller can act differently because of it."""

    # InvalidRequest
    BAD_ARGUMENT = "bad-argument"
    BAD_KEY = "bad-key"
    NOT_ALLOWED = "not-allowed"
    NO_FUNDS = "no-funds"
    UNKNOWN_TOPIC = "unknown-topic"
    STALE_SEQUENCE = "stale-sequence"
    WRONG_NETWORK = "wrong-network"
    REVERTED = "reverted"
    FENCED = "fenced"
    ALREADY_EXISTS = "already-exists"
    UNKNOWN_SUBSCRIPTION = "unknown-subscription"
    NOT_PENDING = "not-pending"
    NO_ACCESS = "no-access"
    # InvalidInput
    MALFORMED = "malformed"
    DISAGREES = "disagrees"
    BEYOND_FINALITY = "beyond-finality"
    # Unavailable
    NO_ANSWER = "no-answer"
    NOT_YET = "not-yet"
    TOOL_MISSING = "tool-missing"
    NOT_STORED = "not-stored"
    HELD_ELSEWHERE = "held-elsewhere"
    TOO_MANY = "too-many"


class ProofcastError(Exception):
    """Base of the tree; raise one of its subclasses."""

    exit_code: ClassVar[int]

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        hint: str,
        have: int | str | None = None,
        need: int | str | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.hint = hint
        self.have = have
        """The value found, where the error is a comparison that failed."""
        self.need = need
        """The value that would have been accepted."""


class InvalidRequest(ProofcastError):
    """The caller asked for something meaningless; the same call can never succeed."""

    exit_code = 2


class InvalidInput(ProofcastError):
    """Someone else sent us something false; it is rejected and nothing of it is kept."""

    exit_code = 1


class Misbehaviour(InvalidInput):
    """Someone else sent us something false and signed it; `evidence` convinces a stranger."""

    def __init__(self, reason: Reason, message: str, *, hint: str, evidence: bytes) -> None:
        super().__init__(reason, message, hint=hint)
        self.evidence = evidence


class Unavailable(ProofcastError):
    """Nobody answered, or the answer is not there yet; the same call may succeed later."""

    exit_code = 75
    """`EX_TEMPFAIL` of sysexits.h, which schedulers and mail systems retry."""

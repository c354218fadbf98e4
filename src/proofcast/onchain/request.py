"""What a transaction shall do, before anybody has signed it."""

import hashlib
from dataclasses import dataclass

from proofcast.onchain.abi import Call, Result


@dataclass(frozen=True, slots=True)
class Request:
    to: bytes | None
    """None creates a contract."""
    data: bytes
    value: int = 0
    """Wei."""
    gas_limit: int | None = None
    """None for the node's estimate and a margin."""

    def compute_intent(self) -> bytes:
        """Identifies what is asked for; how much gas it gets is not part of it."""
        return compute_intent(self.to, self.data, self.value)


def ask(to: bytes, call: Call[Result], gas_limit: int | None = None) -> Request:
    """A typed call as a request."""
    return Request(to, call.data, call.value, gas_limit)


def compute_intent(*parts: bytes | str | int | None) -> bytes:
    """Identifies what a caller wants, so that an idempotency key cannot be used for something else."""
    return hashlib.sha256(repr(parts).encode()).digest()

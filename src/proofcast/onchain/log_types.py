"""How a contract's events are logged, and typed events from logs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from eth_hash.auto import keccak

from proofcast.onchain.abi import Values, build_from, decode_values

Event = TypeVar("Event", covariant=True)
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class LogType(Generic[Event]):
    """How one event is logged; indexed values come first in our contracts, so the order is the signature's."""

    name: str
    indexed: str
    data: str
    build: Callable[[Sequence[object]], Event]

    @property
    def signature(self) -> str:
        types = [part[1:-1] for part in (self.indexed, self.data) if part != "()"]
        return f"{self.name}({','.join(types)})"


def log_type(name: str, indexed: str, data: str, build: Callable[Values, Found]) -> LogType[Found]:
    return LogType(name, indexed, data, partial(build_from, build))


def index_log_types(types: Iterable[LogType[Found]]) -> dict[bytes, LogType[Found]]:
    """Log types by the first topic of their logs."""
    return {bytes(keccak(known.signature.encode())): known for known in types}


def parse_logged(types: Mapping[bytes, LogType[Found]], topics: Sequence[bytes], data: bytes) -> Found | None:
    """The event behind a log's topics and data; None where it is none of these."""
    known = types.get(topics[0]) if topics else None
    if known is None:
        return None
    return known.build(decode_values(known.indexed, b"".join(topics[1:])) + decode_values(known.data, data))

"""Calls, results and logs by Ethereum's contract ABI; addresses are 20 bytes, not text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, ParamSpec, TypeVar

from eth_abi.exceptions import DecodingError
from eth_abi.grammar import TupleType, parse
from eth_hash.auto import keccak

from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum.abi import CODEC
from proofcast.onchain.showing import escape_controls as escape_controls
from proofcast.onchain.showing import format_value as format_value

Result = TypeVar("Result")
Values = ParamSpec("Values")

NOBODY = bytes(20)
"""The zero address."""
SELECTOR_LENGTH = 4


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A contract call, ready to be simulated or sent."""

    data: bytes
    read: Callable[[bytes], Result]
    """Turns what the contract returns into a typed result."""
    value: int = 0
    """Wei sent along."""


@lru_cache(maxsize=256)
def split_types(types: str) -> tuple[str, ...]:
    """The parts of a tuple type: `(uint256,(bytes,bool))` -> `uint256`, `(bytes,bool)`."""
    if types == "()":
        return ()
    parsed = parse(types)
    assert isinstance(parsed, TupleType), types
    return tuple(part.to_type_str() for part in parsed.components)


@lru_cache(maxsize=256)
def compute_selector(signature: str) -> bytes:
    """The first four bytes of a call or a custom error."""
    return bytes(keccak(signature.encode())[:SELECTOR_LENGTH])


def encode_values(types: str, values: Sequence[object]) -> bytes:
    return CODEC.encode(split_types(types), values)


def encode_call(signature: str, *arguments: object) -> bytes:
    types = signature[signature.index("(") :]
    return compute_selector(signature) + encode_values(types, arguments)


def decode_values(types: str, data: bytes) -> tuple[object, ...]:
    """The values in ABI-encoded data; data that does not have these types is refused."""
    try:
        return CODEC.decode(split_types(types), data)
    except (DecodingError, OverflowError) as error:
        raise InvalidInput(
            Reason.MALFORMED,
            f"`{len(data)}` bytes from the chain do not decode as `{types}`",
            hint="check that the address is that of the contract and the node is on the right network",
        ) from error


def build_from(build: Callable[Values, Result], values: Sequence[object]) -> Result:
    """Hand decoded values to a typed constructor; the ABI types, which a test compares with the contract, vouch."""
    return build(*values)  # type: ignore[arg-type,call-arg]


def reading(build: Callable[Values, Result], types: str) -> Callable[[bytes], Result]:
    """A decoder for results of these types."""
    return lambda data: build_from(build, decode_values(types, data))


def returning_nothing() -> None:
    """Builds from no returned value."""

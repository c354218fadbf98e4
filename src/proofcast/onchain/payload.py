"""A payload by its fields, as the ABI type says that a topic's owner declared: `(string flight, uint64 delay)`.

The fields are encoded one after the other, as `abi.encode(flight, delay)` does in a contract. A field may be a tuple
whose own parts have names too; those say what is meant, and are passed over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eth_abi.exceptions import ABITypeError, EncodingError, ParseError
from eth_abi.grammar import normalize, parse

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.ethereum.abi import CODEC
from proofcast.onchain.abi import decode_values, escape_controls

DEPTH_MAX = 8
"""Tuples within tuples; nobody means more, and each costs a call on the stack."""


@dataclass(frozen=True, slots=True)
class PayloadField:
    name: str
    type: str
    """Canonical: without names, and with the bits of an integer."""


def parse_payload_type(text: str) -> tuple[PayloadField, ...]:
    """The fields of a declared type; its owner, whom nobody checked, must have written a tuple with named parts."""
    try:
        fields = tuple(parse_field(part) for part in split_tuple(text.strip()))
    except (ValueError, ParseError, ABITypeError) as error:
        raise refuse_type(text) from error
    if len({field.name for field in fields}) < len(fields):
        raise refuse_type(text)
    return fields


def refuse_type(text: str) -> InvalidInput:
    return InvalidInput(
        Reason.MALFORMED,
        f"`{escape_controls(text)}` is no tuple of named ABI types",
        hint="its owner must declare another, e.g. `(string flight, uint64 delay)`; until then give the payload whole",
    )


def parse_field(part: str) -> PayloadField:
    written, _, name = part.rpartition(" ")
    if not name.isidentifier():
        raise ValueError(part)
    kind: str = normalize(drop_names(written.strip()))  # type: ignore[no-untyped-call]
    parse(kind).validate()
    if not CODEC.is_encodable_type(kind):
        raise ValueError(part)
    return PayloadField(name, kind)


def drop_names(written: str, depth: int = 0) -> str:
    """A type without the names of a tuple's parts: `(uint8 x, bool y)[2]` -> `(uint8,bool)[2]`."""
    if not written.startswith("("):
        return written.partition(" ")[0]
    if depth == DEPTH_MAX:
        raise ValueError(written)
    end = written.rindex(")") + 1
    parts = ",".join(drop_names(part, depth + 1) for part in split_tuple(written[:end]))
    return f"({parts})" + written[end:].partition(" ")[0]


def split_tuple(text: str) -> Iterator[str]:
    """The parts of a tuple, split at the commas that are in no inner one."""
    if not (text.startswith("(") and text.endswith(")")):
        raise ValueError(text)
    depth, start = 0, 1
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if (char == "," and depth == 1) or (depth == 0 and at == len(text) - 1):
            yield text[start:at].strip()
            start = at + 1
        elif depth == 0:
            raise ValueError(text)
    if depth:
        raise ValueError(text)


def encode_fields(fields: tuple[PayloadField, ...], values: Mapping[str, object]) -> bytes:
    """The payload in which every field has its value."""
    require_same_names(fields, values)
    for field in fields:
        require_value(field, values[field.name])
    return CODEC.encode([field.type for field in fields], [values[field.name] for field in fields])


def decode_fields(fields: tuple[PayloadField, ...], payload: bytes) -> dict[str, object]:
    """The fields' values in a payload."""
    types = ",".join(field.type for field in fields)
    values = decode_values(f"({types})", payload)
    return {field.name: value for field, value in zip(fields, values, strict=True)}


def require_same_names(fields: tuple[PayloadField, ...], values: Mapping[str, object]) -> None:
    names = [field.name for field in fields]
    hint = f"the fields are {', '.join(f'`{field.name}` ({field.type})' for field in fields)}"
    for name in values:
        if name not in names:
            raise refuse(f"the payload has no field `{name}`", hint)
    for name in names:
        if name not in values:
            raise refuse(f"the field `{name}` has no value", hint)


def require_value(field: PayloadField, value: object) -> None:
    try:
        CODEC.encode([field.type], [value])
    except EncodingError:
        raise refuse(f"`{value}` is no `{field.type}`", f"give the field `{field.name}` a value of its type") from None


def refuse(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)

"""The fields of a payload as a user writes them: `flight=LH454`, `delay=30`, `legs=[1,2]`."""

import json
from collections.abc import Sequence

from eth_abi.grammar import ABIType, TupleType, parse

from proofcast.cli.values import parse_address, refuse, require_text
from proofcast.onchain.payload import PayloadField, encode_fields

TRUTH = {"true": True, "false": False}


def encode_assignments(fields: tuple[PayloadField, ...], assignments: Sequence[str]) -> bytes:
    """The payload in which each `name=value` is so."""
    types = {field.name: parse(field.type) for field in fields}
    values: dict[str, object] = {}
    for text in assignments:
        name, equals, value = require_text(text).partition("=")
        if not equals or name in values:
            raise refuse(f"`{text}` sets no field", "write each field once, as `--field NAME=VALUE`")
        values[name] = parse_value(types[name], value) if name in types else value
    return encode_fields(fields, values)


def parse_value(kind: ABIType, given: object) -> object:
    """A value of an ABI type; arrays and tuples are written as JSON lists."""
    if kind.is_array or isinstance(kind, TupleType):
        return parse_list(kind, given)
    text = str(given) if not isinstance(given, bool) else str(given).lower()
    base = str(getattr(kind, "base", ""))
    if base in ("uint", "int"):
        return parse_integer(text)
    if base == "bool":
        return TRUTH.get(text, text)
    if base == "address":
        return parse_address(text)
    return parse_bytes(text) if base == "bytes" else text


def parse_bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise refuse(f"`{text}` is no hexadecimal text", "write pairs of the digits 0-9 and a-f") from None


def parse_integer(text: str) -> int | str:
    """A number, in decimal or as 0x and digits; other text is for the encoder to refuse by its type."""
    try:
        return int(text, 0)
    except ValueError:
        return text


def parse_list(kind: ABIType, given: object) -> object:
    items = given if isinstance(given, list) else parse_json(str(given))
    if not isinstance(items, list) or (not kind.is_array and len(items) != len(get_parts(kind))):
        name = kind.to_type_str()  # type: ignore[no-untyped-call]
        raise refuse(f"`{given}` is no `{name}`", "write its parts as a JSON list, e.g. `[1,2]`")
    kinds = [kind.item_type] * len(items) if kind.is_array else get_parts(kind)
    return [parse_value(part, item) for part, item in zip(kinds, items, strict=True)]


def get_parts(kind: ABIType) -> Sequence[ABIType]:
    assert isinstance(kind, TupleType), kind
    return tuple(kind.components)


def parse_json(text: str) -> object:
    try:
        return json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        return None

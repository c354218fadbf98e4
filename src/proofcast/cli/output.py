"""Printing: data on stdout, as text for people or as JSON for programs; everything else on stderr."""

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum

import click

from proofcast.onchain.showing import format_value

JSON_INTEGER_MAX = 2**53
"""Beyond it JavaScript loses digits, so such a number is written as text."""

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


def encode_json(value: object) -> JsonValue:
    """Records as objects, bytes as hex, enums by name."""
    if isinstance(value, Enum):
        return value.name.lower().replace("_", "-")
    if isinstance(value, bytes):
        return format_value(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(name): encode_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode_json(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > JSON_INTEGER_MAX:
        return str(value)
    assert value is None or isinstance(value, bool | int | float | str), type(value)
    return value


def emit(as_json: bool, record: object, text: str) -> None:
    """Print a command's result."""
    click.echo(json.dumps(encode_json(record)) if as_json else text)


def note(text: str) -> None:
    """Tell the user something that is not the result."""
    click.echo(text, err=True)


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the first row is the heading."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def format_record(record: dict[str, str]) -> str:
    """One line per field, values below each other."""
    width = max(map(len, record))
    return "\n".join(f"{name.ljust(width)}  {value}".rstrip() for name, value in record.items())

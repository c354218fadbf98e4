"""Recursive length prefix: Ethereum's encoding of nested byte strings, read strictly.

An item has exactly one encoding, and only that one is accepted:

- a byte below 0x80 is itself, never a string of length one;
- a length is written in the head's one byte up to 55, in as few big-endian bytes as possible beyond;
- an item ends within the list that holds it, and the last item of a list ends where the list does;
- nothing follows the outermost item.

Whatever breaks a rule is refused with the position of the byte at which it shows. `decode` reads any item; a reader
that knows what it expects walks the spans instead, so that it can name positions too and copies only what it keeps.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from proofcast.errors import InvalidInput, Reason

Item: TypeAlias = "bytes | list[Item]"

DEPTH_MAX = 64
"""Lists within lists; nothing of Ethereum goes deeper than ten, and a bomb of brackets must not exhaust the stack."""
SHORT_MAX = 55
"""The longest payload whose length stands in the head itself."""
STRING, LONG_STRING, LIST, LONG_LIST = 0x80, 0xB7, 0xC0, 0xF7
"""What the head adds to the length, or beyond 55 to the length of the length."""


class Span(NamedTuple):
    """Where an item lies in the data that holds it."""

    position: int
    """Of its head."""
    is_list: bool
    start: int
    end: int
    """The payload is `data[start:end]`."""


def refuse(position: int, fault: str) -> InvalidInput:
    return InvalidInput(
        Reason.MALFORMED,
        f"{fault} at byte `{position}`",
        hint="the bytes are not what Ethereum encodes; get them again from another source",
    )


# --- writing


def encode(item: Item) -> bytes:
    if isinstance(item, list):
        payload = b"".join(map(encode, item))
        return encode_head(len(payload), LIST, LONG_LIST) + payload
    if len(item) == 1 and item[0] < STRING:
        return item
    return encode_head(len(item), STRING, LONG_STRING) + item


def encode_head(length: int, short: int, long: int) -> bytes:
    if length <= SHORT_MAX:
        return bytes((short + length,))
    size = encode_integer(length)
    return bytes((long + len(size),)) + size


def encode_integer(number: int) -> bytes:
    """Big-endian in as few bytes as possible; none for zero."""
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


# --- reading


def decode(data: bytes) -> Item:
    return build_item(data, read_whole(data), 0)


def build_item(data: bytes, span: Span, depth: int) -> Item:
    if depth > DEPTH_MAX:
        raise refuse(span.position, f"lists are nested deeper than `{DEPTH_MAX}`")
    if not span.is_list:
        return data[span.start : span.end]
    return [build_item(data, child, depth + 1) for child in read_children(data, span)]


def read_whole(data: bytes, position: int = 0) -> Span:
    """The one item that fills the data from `position` to its end."""
    span = read_span(data, position, len(data))
    if span.end != len(data):
        raise refuse(span.end, "something follows the item")
    return span


def read_children(data: bytes, span: Span) -> list[Span]:
    """The items of a list; their own items are not looked at."""
    if not span.is_list:
        raise refuse(span.position, "a string stands where a list belongs")
    children, position = [], span.start
    while position < span.end:
        child = read_span(data, position, span.end)
        children.append(child)
        position = child.end
    return children


def read_span(data: bytes, position: int, limit: int) -> Span:
    """The item that begins at `position` and ends at `limit` or before."""
    if position >= limit:
        raise refuse(position, "the data ends where an item should begin")
    head = data[position]
    if head < STRING:
        return Span(position, False, position, position + 1)
    is_list = head >= LIST
    short, long = (LIST, LONG_LIST) if is_list else (STRING, LONG_STRING)
    start = position + 1
    length = head - short
    if head > long:
        start += head - long
        length = read_length(data, position + 1, start, limit)
    end = start + length
    if end > limit:
        raise refuse(position, f"an item of `{length}` bytes ends beyond what holds it")
    if length == 1 and not is_list and data[start] < STRING:
        raise refuse(position, "a single byte is written as a string")
    return Span(position, is_list, start, end)


def read_length(data: bytes, start: int, end: int, limit: int) -> int:
    if end > limit:
        raise refuse(start, "the data ends within a length")
    length = int.from_bytes(data[start:end], "big")
    if data[start] == 0 or length <= SHORT_MAX:
        raise refuse(start, "a length is not written in its shortest form")
    return length


def get_string(data: bytes, span: Span, length: int | None = None) -> bytes:
    """A byte string, of exactly `length` bytes where that is given."""
    if span.is_list:
        raise refuse(span.position, "a list stands where a string belongs")
    if length is not None and span.end - span.start != length:
        raise refuse(span.position, f"a string of `{span.end - span.start}` bytes stands where `{length}` belong")
    return data[span.start : span.end]


def get_integer(data: bytes, span: Span, bits: int) -> int:
    """An unsigned integer below 2 to the power of `bits`, in its shortest form."""
    digits = get_string(data, span)
    number = int.from_bytes(digits, "big")
    if digits[:1] == b"\0":
        raise refuse(span.position, "an integer begins with a zero byte")
    if number >> bits:
        raise refuse(span.position, f"an integer has more than `{bits}` bits")
    return number


def require_count(spans: Sequence[Span], parent: Span, least: int, most: int | None) -> None:
    """Refuse a list with too few or too many items; `most` is None where there is no upper bound."""
    if len(spans) < least or (most is not None and len(spans) > most):
        wanted = f"`{least}`" if most == least else f"`{least}` or more"
        raise refuse(parent.position, f"a list has `{len(spans)}` items instead of {wanted}")

"""The container of era1 archives: entries of two bytes of type, four of length, two of zeros, then the data."""

import mmap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum import rlp

VERSION, HEADER, BODY, RECEIPTS, DIFFICULTY, ACCUMULATOR, INDEX = (
    0x3265,
    0x03,
    0x04,
    0x05,
    0x06,
    0x07,
    0x3266,
)
BLOCK = (HEADER, BODY, RECEIPTS, DIFFICULTY)
HEAD_LENGTH = 8


class Entry(NamedTuple):
    type: int
    start: int
    end: int


def iterate_entries(data: mmap.mmap) -> Iterator[Entry]:
    position = 0
    while position < len(data):
        head = data[position : position + HEAD_LENGTH]
        start = position + HEAD_LENGTH
        end = start + int.from_bytes(head[2:6], "little")
        if len(head) < HEAD_LENGTH or head[6:] != b"\0\0" or end > len(data):
            raise refuse(position, "an entry that is cut off")
        yield Entry(int.from_bytes(head[:2], "little"), start, end)
        position = end


def split_entries(entries: Sequence[Entry]) -> tuple[list[Sequence[Entry]], Sequence[Entry]]:
    """The four entries of each block; the accumulator and the index."""
    middle = entries[1:-2]
    blocks = [middle[at : at + len(BLOCK)] for at in range(0, len(middle), len(BLOCK))]
    expected = [VERSION, *BLOCK * len(blocks), ACCUMULATOR, INDEX]
    if not blocks or [entry.type for entry in entries] != expected:
        odd = next((entry for entry, type_ in zip(entries, expected, strict=False) if entry.type != type_), None)
        raise refuse(odd.start if odd else 0, f"an entry of type `{odd.type:#06x}`" if odd else "too few entries")
    return blocks, entries[-2:]


def refuse(position: int, what: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, f"{what} stands at byte `{position}`", hint="get the file again")


def split_body(body: bytes) -> tuple[tuple[bytes, ...], bytes]:
    """Transactions, and the encoded list of ommers."""
    whole = rlp.read_whole(body)
    parts = rlp.read_children(body, whole)
    rlp.require_count(parts, whole, 2, 2)
    transactions, ommers = parts
    return slice_items(body, transactions), body[ommers.position : ommers.end]


def split_items(data: bytes) -> tuple[bytes, ...]:
    return slice_items(data, rlp.read_whole(data))


def slice_items(data: bytes, span: rlp.Span) -> tuple[bytes, ...]:
    """Consensus bytes of each: a list as it is encoded, a typed one without the head of the string it stands in."""
    children = rlp.read_children(data, span)
    return tuple(data[child.position if child.is_list else child.start : child.end] for child in children)

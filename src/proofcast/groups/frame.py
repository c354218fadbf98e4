"""Records of the server's logs, and the entries of a frame.

A log is a row of records, each written by one append that is durable before the next begins:

    record = length u32 | crc32 u32 | number u64 | body          crc32 over number and body; numbers have no gaps

So only the last record can be torn, by a crash during its append; nobody was told of it, and it is cut off. A damaged
record with a whole one behind it was durable once, and the log is refused: a server that forgot it would contradict
what it has signed.

The body of a frame is a row of entries, in the order in which the server accepted them:

    entry  = kind u8 | client 32 | length u32 | body

Everything the server knows is made from these entries; nothing else changes its state.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from proofcast.errors import InvalidInput, Reason

try:  # five times as fast
    from proofcast_native import crc32  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError:
    from zlib import crc32

RECORD_HEADER = struct.Struct(">IIQ")
ENTRY_HEADER = struct.Struct(">B32sI")
RECORD_BYTES_MAX = 1 << 26
"""64 MiB: a length beyond it is damage, not a record."""


class EntryKind(IntEnum):
    """What a client asked for."""

    SERIES = 1
    """Messages to deliver, consecutive in the order."""
    DELETE = 2
    """Forget the inbox up to a sequence."""
    KEYS = 3
    """Publish one-time keys."""
    CLAIM = 4
    """Take a one-time key of another device."""
    DEMAND = 5
    """Attest that nothing came."""
    COSIGN = 6
    """A witness's signatures under checkpoints."""


@dataclass(frozen=True, slots=True)
class Record:
    number: int
    body: memoryview
    end: int
    """Where the next record begins."""


@dataclass(frozen=True, slots=True)
class Entry:
    kind: EntryKind
    client: bytes
    body: bytes


def encode_record_header(number: int, parts: Sequence[bytes]) -> bytes:
    """Of a record whose body is these parts, one after the other."""
    return RECORD_HEADER.pack(sum(map(len, parts)), compute_checksum(number, parts), number)


def compute_checksum(number: int, parts: Sequence[bytes | memoryview]) -> int:
    checksum: int = crc32(number.to_bytes(8, "big"))
    for part in parts:
        checksum = crc32(part, checksum)
    return checksum


def find_record(data: memoryview, offset: int) -> Record | None:
    """The whole record at a place, or None where there is none."""
    if offset + RECORD_HEADER.size > len(data):
        return None
    length, checksum, number = RECORD_HEADER.unpack_from(data, offset)
    begin = offset + RECORD_HEADER.size
    if length > RECORD_BYTES_MAX or begin + length > len(data):
        return None
    body = data[begin : begin + length]
    return Record(number, body, begin + length) if compute_checksum(number, [body]) == checksum else None


def parse_records(data: memoryview, first: int) -> Iterator[Record]:
    """The whole records of a segment, numbered from `first`; ends before a torn one and refuses a damaged one."""
    offset, number = 0, first
    while (record := find_record(data, offset)) is not None:
        if record.number != number:
            raise refuse(f"record `{record.number}` stands where `{number}` belongs")
        yield record
        offset, number = record.end, number + 1
    if find_later_record(data, offset, number) is not None:
        raise refuse(f"record `{number}` is damaged and a whole one follows it")


def find_later_record(data: memoryview, offset: int, number: int) -> Record | None:
    """A whole record after a damaged one, found by the number it must have."""
    raw, wanted = bytes(data[offset:]), (number + 1).to_bytes(8, "big")
    place = raw.find(wanted)
    while place >= 0:
        record = find_record(data, offset + place - 8) if place >= 8 else None
        if record is not None:
            return record
        place = raw.find(wanted, place + 1)
    return None


def refuse(fault: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, f"the log is damaged: {fault}", hint="restore the folder from a replica")


def encode_entry(kind: EntryKind, client: bytes, body: bytes) -> bytes:
    return ENTRY_HEADER.pack(kind, client, len(body)) + body


def parse_entries(body: bytes, *, skip: EntryKind | None = None) -> Iterator[Entry]:
    """The entries of a frame of our own log."""
    for kind, client, begin, end in iterate_places(body):
        if kind != skip:
            yield Entry(EntryKind(kind), client, body[begin:end])


def iterate_places(body: bytes) -> Iterator[tuple[int, bytes, int, int]]:
    """Kind and client of each entry, and from where to where its body goes; the checksum was right, so all is whole."""
    offset, unpack, header = 0, ENTRY_HEADER.unpack_from, ENTRY_HEADER.size
    while offset < len(body):
        kind, client, length = unpack(body, offset)
        begin, offset = offset + header, offset + header + length
        yield kind, client, begin, offset
    assert offset == len(body), "a frame ends inside an entry"

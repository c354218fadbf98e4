"""The append-only log on disk: a folder of segment files, one writer.

An append returns when its record is durable (`fdatasync`, and `fsync` of the folder for a new segment). After an error
of the disk the log refuses everything, because what it holds is unknown until it is read again.
"""

import fcntl
import mmap
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.groups.frame import Record, encode_record_header, parse_records

SEGMENT_BYTES_MAX = 64 << 20
"""A segment is the unit of trimming: small enough to free space soon, large enough that a folder holds few."""
SUFFIX = ".segment"
PARTS_MAX = os.sysconf("SC_IOV_MAX")
"""That one call writes."""
PLACE = Struct(">QQI")


class Place(NamedTuple):
    """Where the body of a record stands."""

    segment: int
    """Number of its first record."""
    begin: int
    size: int

    def encode(self) -> bytes:
        return PLACE.pack(*self)


def parse_place(data: bytes) -> Place:
    return Place(*PLACE.unpack(data))


class SegmentLog:
    """Numbered records; `next_number` is the one the next append gets, `place` is where the last one stands."""

    place: Place

    def __init__(self, folder: Path, *, first: int = 1, segment_bytes_max: int = SEGMENT_BYTES_MAX) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.segment_bytes_max = segment_bytes_max
        self.lock = lock_folder(folder)
        self.failed: OSError | None = None
        segments = list_segments(folder)
        self.segments_begun = len(segments)
        self.next_number, self.size = recover_tail(segments[-1]) if segments else (first, 0)
        self.segment = get_first(segments[-1]) if segments else first
        self.file = os.open(segments[-1], os.O_WRONLY | os.O_APPEND) if segments else self.begin_segment()

    def append(self, *parts: bytes) -> int:
        """Write one record, wait until it is durable, and return its number. Its body is these parts."""
        if self.failed:
            raise refuse_disk(self.folder, self.failed)
        number = self.next_number
        try:
            if self.size >= self.segment_bytes_max:
                os.close(self.file)
                self.file = self.begin_segment()
            header = encode_record_header(number, parts)
            written = write_durably(self.file, header, *parts)
        except OSError as error:
            self.failed = error
            raise refuse_disk(self.folder, error) from error
        self.place = Place(self.segment, self.size + len(header), written - len(header))
        self.size, self.next_number = self.size + written, number + 1
        return number

    def begin_segment(self) -> int:
        file = os.open(self.folder / name_segment(self.next_number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        sync_folder(self.folder)
        self.size, self.segment = 0, self.next_number
        self.segments_begun += 1
        return file

    def read(self, first: int) -> Iterator[Record]:
        """Records from `first` on."""
        return read_log(self.folder, first)

    def find_end_before(self, count: int) -> int:
        """The last record before the newest segments; 0 where there are no others."""
        segments = list_segments(self.folder)
        return get_first(segments[-count]) - 1 if len(segments) > count else 0

    def close(self) -> None:
        os.close(self.file)
        os.close(self.lock)


class RecordReader:
    """Reads durable records by their place: the other processes of a server take them from the memory of the system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.segment = -1
        self.file = -1

    def read(self, place: Place) -> bytes:
        if place.segment != self.segment:
            self.close()
            self.file = os.open(self.folder / name_segment(place.segment), os.O_RDONLY)
            self.segment = place.segment
        body = os.pread(self.file, place.size, place.begin)
        assert len(body) == place.size, f"the log ends within the record at {place}"
        return body

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


def read_log(folder: Path, first: int) -> Iterator[Record]:
    """Records from `first` on, for whoever does not write; a record that is being written is not seen."""
    segments = list_segments(folder)
    if segments and get_first(segments[0]) > first:
        fault = f"the log is damaged: record `{first}` is missing, `{get_first(segments[0])}` is its first"
        raise InvalidInput(Reason.MALFORMED, fault, hint="restore the folder from a replica")
    later: list[int | None] = [get_first(segment) for segment in segments[1:]]
    for segment, end in zip(segments, [*later, None], strict=True):
        if end is None or end > first:
            yield from (record for record in read_segment(segment, end) if record.number >= first)


def trim_log(folder: Path, before: int) -> None:
    """Delete the segments that hold nothing from `before` on; the last one always stays, for whoever writes."""
    for segment, following in pairwise(list_segments(folder)):
        if get_first(following) <= before:
            segment.unlink()
    sync_folder(folder)


def list_segments(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"))


def name_segment(first: int) -> str:
    return f"{first:020}{SUFFIX}"


def get_first(segment: Path) -> int:
    return int(segment.name.removesuffix(SUFFIX))


def map_segment(segment: Path) -> memoryview:
    """Its bytes, where the system keeps them; it only ever grows while somebody reads."""
    with segment.open("rb") as file:
        is_empty = os.fstat(file.fileno()).st_size == 0
        return memoryview(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def read_segment(segment: Path, end: int | None) -> Iterator[Record]:
    """The records of a segment, which must reach up to `end` where another one follows."""
    number = get_first(segment)
    for record in parse_records(map_segment(segment), number):
        number = record.number + 1
        yield record
    if end is not None and number < end:
        fault = f"the log is damaged: `{segment.name}` ends at record `{number}`, `{end}` was expected"
        raise InvalidInput(Reason.MALFORMED, fault, hint="restore the folder from a replica")


def recover_tail(segment: Path) -> tuple[int, int]:
    """Cut a torn record off; the next number and the size that is left."""
    number, end = get_first(segment), 0
    for record in parse_records(map_segment(segment), get_first(segment)):
        number, end = record.number + 1, record.end
    if segment.stat().st_size > end:
        with segment.open("r+b") as file:
            file.truncate(end)
            os.fsync(file.fileno())
    return number, end


def write_durably(file: int, *parts: bytes) -> int:
    """Usually by one call; a disk that takes less at once is given the rest. The number of bytes."""
    size = sum(map(len, parts))
    written = os.writev(file, parts[:PARTS_MAX])
    if written < size:
        rest = memoryview(b"".join(parts))[written:]
        while rest:
            rest = rest[os.write(file, rest) :]
    os.fdatasync(file)
    return size


def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole and durably, readable by its owner alone; after a crash it is the old one or the new one."""
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_folder(folder: Path) -> int:
    """One writer at a time; the lock ends with the process that holds it."""
    descriptor = os.open(folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        message = f"another process writes to `{folder}`"
        raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="stop it, or name another folder") from None
    return descriptor


def refuse_disk(folder: Path, error: OSError) -> Unavailable:
    message = f"the log in `{folder}` cannot be written: {error.strerror}"
    return Unavailable(Reason.NO_ANSWER, message, hint="make room on the disk and start the server again")

"""The log on disk: refusals first, then what survives a crash."""

import os
import resource
from pathlib import Path

import pytest

from proofcast.errors import InvalidInput, InvalidRequest, Unavailable
from proofcast.groups.frame import RECORD_HEADER, EntryKind, encode_entry, encode_record_header, parse_entries
from proofcast.groups.io.log import RecordReader, SegmentLog, list_segments, parse_place, trim_log

BODIES = [b"one", b"", b"three" * 40, b"four"]


def write(folder: Path, bodies: list[bytes] = BODIES, segment_bytes_max: int = 1 << 20) -> Path:
    """A log with these records; its last segment."""
    log = SegmentLog(folder, segment_bytes_max=segment_bytes_max)
    for body in bodies:
        log.append(body)
    log.close()
    return list_segments(folder)[-1]


def read(folder: Path, first: int = 1) -> list[tuple[int, bytes]]:
    log = SegmentLog(folder)
    try:
        return [(record.number, bytes(record.body)) for record in log.read(first)]
    finally:
        log.close()


def test_second_writer_is_refused(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    with pytest.raises(InvalidRequest, match="another process writes"):
        SegmentLog(tmp_path)
    log.close()
    SegmentLog(tmp_path).close()


@pytest.mark.parametrize("offset", [0, 5, 9, RECORD_HEADER.size, RECORD_HEADER.size + 2])
def test_damage_before_a_whole_record_is_refused(tmp_path: Path, offset: int) -> None:
    segment = write(tmp_path)
    data = bytearray(segment.read_bytes())
    data[offset] ^= 1
    segment.write_bytes(data)
    with pytest.raises(InvalidInput, match="damaged"):
        SegmentLog(tmp_path)
    assert segment.read_bytes() == data, "a refused log is left as it is"


def test_record_at_a_wrong_place_is_refused(tmp_path: Path) -> None:
    segment = write(tmp_path)
    segment.write_bytes(encode_record_header(1, [b"one"]) + b"one" + encode_record_header(3, [b"three"]) + b"three")
    with pytest.raises(InvalidInput, match="record `3` stands where `2` belongs"):
        SegmentLog(tmp_path)


def test_shortened_earlier_segment_is_refused(tmp_path: Path) -> None:
    write(tmp_path, segment_bytes_max=1)
    first = list_segments(tmp_path)[0]
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(InvalidInput, match="ends at record `1`, `2` was expected"):
        read(tmp_path)


def test_failed_disk_is_final(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    log.append(b"durable")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, limits[1]))
    try:
        with pytest.raises(Unavailable, match="File too large"):
            log.append(b"x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(Unavailable):
        log.append(b"after")
    log.close()
    assert read(tmp_path) == [(1, b"durable")]


def test_torn_tail_is_cut_at_every_byte(tmp_path: Path) -> None:
    """Whatever part of the last record reached the disk, the others survive and its number is used again."""
    whole = write(tmp_path / "whole").read_bytes()
    last = len(whole) - RECORD_HEADER.size - len(BODIES[3])
    for size in range(last, len(whole)):
        folder = tmp_path / str(size)
        segment = write(folder)
        segment.write_bytes(whole[:size])
        log = SegmentLog(folder)
        assert log.next_number == 4
        assert log.append(b"again") == 4
        log.close()
        assert read(folder) == [(1, b"one"), (2, b""), (3, BODIES[2]), (4, b"again")]


def test_torn_tail_with_garbage_is_cut(tmp_path: Path) -> None:
    segment = write(tmp_path)
    with segment.open("ab") as file:
        file.write(os.urandom(5000))
    assert [number for number, _ in read(tmp_path)] == [1, 2, 3, 4]


def test_reading_from_a_number_over_segments(tmp_path: Path) -> None:
    write(tmp_path, segment_bytes_max=1)
    assert len(list_segments(tmp_path)) == len(BODIES)
    assert read(tmp_path, 3) == [(3, BODIES[2]), (4, b"four")]


def test_trimming_keeps_what_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, segment_bytes_max=1)
    trim_log(tmp_path, 3)
    assert read(tmp_path, 3) == [(3, BODIES[2]), (4, b"four")]
    with pytest.raises(InvalidInput, match="record `2` is missing, `3` is its first"):
        read(tmp_path, 2)
    trim_log(tmp_path, 99)
    log = SegmentLog(tmp_path)
    assert log.append(b"five") == 5
    log.close()
    assert read(tmp_path, 4) == [(4, b"four"), (5, b"five")]


def test_entries_come_back() -> None:
    entries = [(EntryKind.SERIES, b"a" * 32, b"x" * 70_000), (EntryKind.DEMAND, b"b" * 32, b"")]
    body = b"".join(encode_entry(*entry) for entry in entries)
    assert [(entry.kind, entry.client, entry.body) for entry in parse_entries(body)] == entries


@pytest.mark.parametrize("segment_bytes_max", [1, 1 << 20])
def test_record_is_read_where_it_was_written(tmp_path: Path, segment_bytes_max: int) -> None:
    write(tmp_path, segment_bytes_max=segment_bytes_max)
    log, reader = SegmentLog(tmp_path, segment_bytes_max=segment_bytes_max), RecordReader(tmp_path)
    for parts in ((b"five",), (), (b"six ", b"and", b" seven")):
        log.append(*parts)
        assert reader.read(parse_place(log.place.encode())) == b"".join(parts)
    reader.close()
    log.close()
    assert [body for _, body in read(tmp_path)] == [*BODIES, b"five", b"", b"six and seven"]


def test_record_of_very_many_parts_is_whole(tmp_path: Path) -> None:
    """One call of the system takes a thousand or so."""
    log = SegmentLog(tmp_path)
    parts = [b"%d," % number for number in range(5_000)]
    log.append(*parts)
    log.close()
    assert read(tmp_path) == [(1, b"".join(parts))]

"""When frames are cut."""

from proofcast.groups.cutter import FRAME_BYTES_SOFT, FRAME_MESSAGES_MAX, IN_WORK_MAX, Cutter


def make_cutter() -> Cutter:
    return Cutter(epoch_s=0.02, idle_s=1.0, began=100.0)


def test_whoever_is_behind_stops_cutting() -> None:
    cutter = make_cutter()
    for now in range(200, 200 + IN_WORK_MAX):
        assert cutter.get_delay(now) == 0
        cutter.cut(now)
    cutter.add(1, b"entry")
    assert cutter.get_delay(9_999.0) is None
    cutter.note_done()
    assert cutter.get_delay(9_999.0) == 0


def test_frame_never_holds_more_messages_than_sequences() -> None:
    cutter = make_cutter()
    cutter.add(FRAME_MESSAGES_MAX - 1, b"a")
    cutter.add(2, b"b")
    cutter.add(1, b"c")
    assert [cutter.cut(101.0), cutter.cut(102.0)] == [[b"a"], [b"b", b"c"]]


def test_idle_server_still_advances() -> None:
    cutter = make_cutter()
    assert cutter.get_delay(100.25) == 0.75
    assert cutter.get_delay(101.0) == 0
    assert cutter.cut(101.0) == []


def test_entries_wait_for_the_epoch_and_no_longer() -> None:
    cutter = make_cutter()
    cutter.add(1, b"one")
    assert 0 < (cutter.get_delay(100.01) or 0) <= 0.02
    assert cutter.get_delay(100.02) == 0


def test_full_frame_is_cut_at_once() -> None:
    cutter = make_cutter()
    cutter.add(1, bytes(FRAME_BYTES_SOFT))
    cutter.add(1, b"next")
    assert cutter.get_delay(100.0) == 0
    assert cutter.cut(100.0) == [bytes(FRAME_BYTES_SOFT)]
    assert cutter.cut(100.1) == [b"next"]
    assert cutter.waiting_bytes == 0

"""Blooms prove absence and nothing else."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.ethereum.abi import compute_topic
from proofcast.ethereum.bloom import LogFilter, compute_bloom, match_blooms, may_contain, may_match
from proofcast.ethereum.receipt import Log, parse_receipt
from proofcast.testing.ethereum import Recorded

ADDRESSES = st.binary(min_size=20, max_size=20)
TOPICS = st.binary(min_size=32, max_size=32)
LOGS = st.builds(Log, ADDRESSES, st.lists(TOPICS, max_size=4).map(tuple), st.just(b""))
A, B = b"a" * 20, b"b" * 20
X, Y = b"x" * 32, b"y" * 32


@pytest.mark.parametrize(
    ("wanted", "log"),
    [
        (LogFilter(frozenset({A})), Log(B, (), b"")),
        (LogFilter(topics=(frozenset({X}),)), Log(A, (), b"")),
        (LogFilter(topics=(frozenset({X}),)), Log(A, (Y, X), b"")),
        (LogFilter(topics=(None, frozenset({X}))), Log(A, (X,), b"")),
        (LogFilter(topics=(None,)), Log(A, (), b"")),
        (LogFilter(frozenset({A}), (frozenset({X}),)), Log(A, (Y,), b"")),
    ],
)
def test_log_is_not_wanted(wanted: LogFilter, log: Log) -> None:
    assert not wanted.matches(log)


@pytest.mark.parametrize(
    "wanted",
    [
        LogFilter(),
        LogFilter(frozenset({A, B})),
        LogFilter(topics=(None, frozenset({X, Y}))),
        LogFilter(frozenset({A}), (frozenset({X}), frozenset({Y}))),
    ],
)
def test_log_is_wanted(wanted: LogFilter) -> None:
    assert wanted.matches(Log(A, (X, Y), b""))


def test_empty_bloom_contains_nothing() -> None:
    assert not may_contain(bytes(256), A)
    assert not may_match(bytes(256), LogFilter(frozenset({A})))
    assert may_match(bytes(256), LogFilter())


@given(st.lists(LOGS, min_size=1, max_size=5), st.data())
def test_a_bloom_never_denies_what_is_there(logs: list[Log], data: st.DataObject) -> None:
    log = data.draw(st.sampled_from(logs))
    some = LogFilter(frozenset({log.address, B}), tuple(frozenset({topic}) for topic in log.topics[:1]))
    assert some.matches(log)
    assert may_match(compute_bloom(logs), some)


@given(st.lists(LOGS, max_size=20), st.lists(LOGS, max_size=4))
def test_bitmaps_say_what_single_blooms_say(logs: list[Log], sought: list[Log]) -> None:
    blooms = [compute_bloom([log]) for log in logs]
    filters = [LogFilter(frozenset({log.address})) for log in [*sought, *logs[:2]]]
    for wanted, bitmap in zip(filters, match_blooms(b"".join(blooms), filters), strict=True):
        flags = [bool(bitmap[at // 8] >> at % 8 & 1) for at in range(len(blooms))]
        assert flags == [may_match(bloom, wanted) for bloom in blooms]


@pytest.mark.needs("data")
@pytest.mark.slow
def test_recorded_headers_have_their_logs_blooms(recorded: Sequence[Recorded]) -> None:
    for block in recorded:
        logs = [log for raw in block.receipts for log in parse_receipt(raw).logs]
        assert compute_bloom(logs) == block.header.logs_bloom


@pytest.mark.needs("data")
@pytest.mark.parametrize(
    ("number", "publisher"),
    [
        (8_569_169, "e22ee57780ba71e1edd18e066c5b8a2a93bdc3ae"),
        (8_628_615, "74be867fbd89bc3507f145b36ba76cd0b1bf4f1a"),
    ],
)
def test_decentagrams_own_event_is_found(recorded: Sequence[Recorded], number: int, publisher: str) -> None:
    """The two Goerli blocks of its repository."""
    wanted = LogFilter(frozenset({bytes.fromhex(publisher)}), (frozenset({compute_topic("SyncMsg(bytes16,bytes32)")}),))
    (block,) = [block for block in recorded if block.header.number == number]
    assert may_match(block.header.logs_bloom, wanted)
    assert any(wanted.matches(log) for raw in block.receipts for log in parse_receipt(raw).logs)

"""How much one device may ask for."""

import pytest

from proofcast.errors import Unavailable
from proofcast.groups import admission
from proofcast.groups.admission import Limiter, Rate

ALICE, BOB = b"a" * 32, b"b" * 32


def test_beyond_the_burst_is_refused_and_says_how_long() -> None:
    limiter = Limiter(Rate(per_s=10, burst=100), "bytes")
    limiter.take(ALICE, 95, now=0)
    with pytest.raises(Unavailable, match="asks for `10` bytes where `5` are left") as refused:
        limiter.take(ALICE, 10, now=0)
    assert refused.value.hint == "wait `0.5` seconds"
    limiter.take(BOB, 100, now=0)


def test_refused_use_costs_nothing_and_time_fills() -> None:
    limiter = Limiter(Rate(per_s=10, burst=100), "bytes")
    limiter.take(ALICE, 100, now=0)
    with pytest.raises(Unavailable):
        limiter.take(ALICE, 30, now=2)
    limiter.take(ALICE, 30, now=3)


def test_more_than_the_burst_passes_when_the_bucket_is_full() -> None:
    """Else a single large request could never be made; it is paid for afterwards."""
    limiter = Limiter(Rate(per_s=10, burst=100), "bytes")
    limiter.take(ALICE, 150, now=0)
    with pytest.raises(Unavailable):
        limiter.take(ALICE, 1, now=4)


def test_full_buckets_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "DEVICES_MAX", 2)
    limiter = Limiter(Rate(per_s=10, burst=100), "bytes")
    for number in range(5):
        limiter.take(bytes([number]) * 32, 10, now=number * 100.0)
    assert len(limiter.levels) <= 3

"""Reorgs while delivering; `bench-reorgs` does the same a thousand times."""

import asyncio
from pathlib import Path

import pytest

from proofcast.testing.broker.histories import live_through
from proofcast.testing.client import live_through_processes


@pytest.mark.parametrize("seed", range(20))
def test_every_subscriber_ends_with_the_canonical_chain(seed: int, tmp_path: Path) -> None:
    asyncio.run(live_through(tmp_path, seed))


@pytest.mark.slow
def test_through_processes_every_reader_ends_with_the_canonical_chain(tmp_path: Path) -> None:
    live_through_processes(tmp_path, 1)

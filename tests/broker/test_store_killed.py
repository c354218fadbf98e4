"""`kill -9` of the broker while it delivers; `make bench-kill-broker` does it 160 times."""

import asyncio
from pathlib import Path

import pytest

from proofcast.testing.broker.killing import Trial


@pytest.mark.slow
def test_killed_broker_loses_nothing_and_repeats_nothing_acknowledged(tmp_path: Path, store_address: str) -> None:
    asyncio.run(Trial(tmp_path, store_address, seed=1).run(kills=3))

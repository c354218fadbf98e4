"""`kill -9` of the broker while it delivers; `make bench-kill-broker` does it 160 times."""

import asyncio
from pathlib import Path

import pytest

from proofcast.testing.broker.killing import Trial
from proofcast.testing.broker.postgres import PostgresServer


@pytest.mark.slow
def test_killed_broker_loses_nothing_and_repeats_nothing_acknowledged(tmp_path: Path) -> None:
    asyncio.run(Trial(tmp_path, str(tmp_path / "broker.sqlite"), seed=1).run(kills=3))


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_one_of_two_brokers_on_a_database_is_killed(tmp_path: Path, postgres_server: PostgresServer) -> None:
    """The other one takes over what the dead one held, and repeats what was not acknowledged, marked."""
    asyncio.run(Trial(tmp_path, postgres_server.create_database(), seed=2, brokers=2).run(kills=3))

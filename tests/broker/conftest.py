"""One real PostgreSQL for the session, and stores of both kinds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proofcast.cli import doctor
from proofcast.testing.broker.postgres import PostgresServer, run_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    program = doctor.find_program("postgres")
    assert program, "marked `needs(postgres)`"
    with run_postgres(program) as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind, empty."""
    if request.param == "sqlite":
        return str(tmp_path / "broker.sqlite")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.create_database()

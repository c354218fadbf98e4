"""One real PostgreSQL for the session, as an unprivileged user in a folder of its own; and both kinds of store."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest

from proofcast.cli import doctor

UNPRIVILEGED = "nobody"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Address of a server, without the name of a database."""
    program = doctor.find_program("postgres")
    assert program, "marked `needs(postgres)`"
    folder = Path(tempfile.mkdtemp(prefix="proofcast-postgres-"))
    as_user = {"user": UNPRIVILEGED} if os.geteuid() == 0 else {}
    if as_user:
        shutil.chown(folder, UNPRIVILEGED)
    tools, data = Path(program).resolve().parent, folder / "data"
    run = {"cwd": folder, "check": True, "capture_output": True, **as_user}
    subprocess.run([tools / "initdb", "-D", data, "-U", "broker", "-A", "trust", "--no-sync"], **run)
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    subprocess.run([tools / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start"], **run)
    try:
        yield f"postgresql://broker@/{{}}?host={quote(str(folder))}"
    finally:
        subprocess.run([tools / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], **run)
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind, empty."""
    if request.param == "sqlite":
        return str(tmp_path / "broker.sqlite")
    server: str = request.getfixturevalue("postgres_server")
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.format(name)

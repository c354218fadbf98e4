"""A real PostgreSQL for tests, in a folder of its own and, where root starts it, as an unprivileged user."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg

UNPRIVILEGED = "nobody"


class PostgresServer:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_database(self) -> str:
        """The address of a new one."""
        name = f"broker_{uuid4().hex}"
        with psycopg.connect(self._get_address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self._get_address(name)

    def _get_address(self, name: str) -> str:
        return f"postgresql://broker@/{name}?host={quote(str(self._folder))}"


@contextmanager
def run_postgres(program: str) -> Iterator[PostgresServer]:
    """Until the context ends. `program` is the path of `postgres`; its companions stand beside it."""
    folder = Path(tempfile.mkdtemp(prefix="proofcast-postgres-"))
    tools, data = Path(program).resolve().parent, folder / "data"
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    if os.geteuid() == 0:
        shutil.chown(folder, UNPRIVILEGED)
    run(folder, tools / "initdb", "-D", data, "-U", "broker", "-A", "trust", "--no-sync")
    run(folder, tools / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
    try:
        yield PostgresServer(folder)
    finally:
        run(folder, tools / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)


def run(folder: Path, *command: str | Path) -> None:
    user = UNPRIVILEGED if os.geteuid() == 0 else None
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user)

"""SQLite and PostgreSQL behind four methods, so that every statement of the store is written once.

Statements are written as SQLite reads them, with `?` for values. Both engines know `ON CONFLICT` and `RETURNING`.
"""

import fcntl
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import psycopg

from proofcast.broker.io.store.schema import MIGRATIONS
from proofcast.errors import InvalidRequest, ProofcastError, Reason, Unavailable

WAIT_S_MAX = 30.0
"""For another process that is committing; a commit takes milliseconds."""
MIGRATION_LOCK = 0x70726F6F66
"""Of PostgreSQL: brokers that start together change the schema one after the other."""
PAGE_SIZE = 8_192
"""Bytes, of a new SQLite file: deliveries of an event of a kilobyte share a page."""
IN_MEMORY = ":memory:"
POSTGRES_SCHEMES = ("postgresql://", "postgres://")

Row = tuple[Any, ...]


class Transaction(Protocol):
    def read(self, statement: str, values: Sequence[object] = ()) -> list[Row]: ...

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        """How many rows were changed."""

    def change_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None: ...

    def freeze(self) -> None:
        """Called first: everything that is read is of one moment."""

    def get_time(self) -> float:
        """The database's clock, in seconds since 1970: the one clock that several brokers share."""


class SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        return self._connection.execute(statement, values).rowcount

    def change_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        self._connection.executemany(statement, rows)

    def freeze(self) -> None:
        """It is so in every transaction."""

    def get_time(self) -> float:
        ((now,),) = self.read("SELECT (julianday('now') - 2440587.5) * 86400.0")
        return float(now)


class SqliteDatabase:
    """One connection, used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._lock: IO[bytes] | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def is_alone(self) -> bool:
        """Is this the only broker on the file? Others that come later are told that they are not."""
        if self._lock is None and str(self._path) != IN_MEMORY:
            lock = self._path.with_suffix(".lock").open("wb")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                return False
            self._lock = lock
        return True

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Alone in writing; on disk at the end, or undone."""
        try:
            connection = self._connection or self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            raise report_unusable(str(self._path), str(error)) from error
        except sqlite3.DatabaseError as error:
            raise refuse_foreign(str(self._path), str(error)) from error

    def _connect(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refuse_foreign(str(self._path), error.strerror or str(error)) from error
        connection = sqlite3.connect(self._path, timeout=WAIT_S_MAX, isolation_level=None, check_same_thread=False)
        with ExitStack() as ending:
            ending.callback(connection.close)
            for setting in (
                f"page_size = {PAGE_SIZE}",
                "journal_mode = WAL",
                "synchronous = FULL",
                "foreign_keys = ON",
            ):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("BEGIN IMMEDIATE")
            migrate(SqliteTransaction(connection), str(self._path))
            connection.execute("COMMIT")
            ending.pop_all()
        self._connection = connection
        return connection


class PostgresTransaction:
    def __init__(self, cursor: psycopg.Cursor[Row]) -> None:
        self._cursor = cursor

    def read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._cursor.execute(translate(statement), values).fetchall()

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        return self._cursor.execute(translate(statement), values).rowcount

    def change_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        self._cursor.executemany(translate(statement), rows)

    def freeze(self) -> None:
        self._cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    def get_time(self) -> float:
        ((now,),) = self.read("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(now)


class PostgresDatabase:
    """One connection, used by one thread at a time, and made again when it was lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._label = hide_password(url)
        self._connection: psycopg.Connection[Row] | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def is_alone(self) -> bool:
        """Nobody knows."""
        return False

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        try:
            connection = self._connection or self._connect()
            with connection.transaction(), connection.cursor() as cursor:
                yield PostgresTransaction(cursor)
        except psycopg.OperationalError as error:
            if self._connection is not None and self._connection.closed:
                self._connection = None
            raise report_unusable(self._label, describe_fault(error)) from error
        except psycopg.Error as error:
            raise refuse_foreign(self._label, describe_fault(error)) from error

    def _connect(self) -> psycopg.Connection[Row]:
        try:
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=int(WAIT_S_MAX))
        except psycopg.ProgrammingError as error:
            raise refuse_foreign(self._label, "no address of a database") from error
        with ExitStack() as ending:
            ending.callback(connection.close)
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
                migrate(PostgresTransaction(cursor), self._label)
            ending.pop_all()
        self._connection = connection
        return connection


def open_database(address: str) -> SqliteDatabase | PostgresDatabase:
    """`postgresql://...`, or the path of a file."""
    return PostgresDatabase(address) if address.startswith(POSTGRES_SCHEMES) else SqliteDatabase(Path(address))


def is_made(address: str) -> bool:
    """Is there something to open? A file is made where there is none; a database server is asked."""
    return address.startswith(POSTGRES_SCHEMES) or Path(address).exists()


def translate(statement: str) -> str:
    return statement.replace("?", "%s")


def migrate(transaction: Transaction, label: str) -> None:
    transaction.change("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
    found = transaction.read("SELECT version FROM schema_version")
    version = int(found[0][0]) if found else 0
    if version > len(MIGRATIONS):
        raise refuse_foreign(label, f"its schema has version {version}, this broker knows {len(MIGRATIONS)}")
    for script in MIGRATIONS[version:]:
        for statement in script.split(";"):
            transaction.change(statement)
    if version < len(MIGRATIONS):
        transaction.change("DELETE FROM schema_version")
        transaction.change("INSERT INTO schema_version VALUES (?)", (len(MIGRATIONS),))


def hide_password(url: str) -> str:
    """The address without its user and password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


def describe_fault(error: psycopg.Error) -> str:
    """The server's one sentence; it holds no password."""
    return (error.diag.message_primary or str(error).strip() or type(error).__name__).splitlines()[0]


def report_unusable(label: str, fault: str) -> ProofcastError:
    return Unavailable(
        Reason.NOT_STORED,
        f"the store `{label}` cannot be used now (`{fault}`)",
        hint="look at the database; nothing that was acknowledged is lost, so try again then",
    )


def refuse_foreign(label: str, fault: str) -> ProofcastError:
    return InvalidRequest(
        Reason.BAD_ARGUMENT,
        f"the store `{label}` cannot be used (`{fault}`)",
        hint="name another file or database; this one holds something else",
    )

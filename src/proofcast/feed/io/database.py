"""The feed's one SQLite file: its tables, and transactions that are on disk when they end."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from proofcast.errors import InvalidRequest, Reason, Unavailable

FILE = "feed.sqlite"
WAIT_S_MAX = 30.0
"""For another process that is committing; a commit takes milliseconds."""
PAGE_SIZE = 8_192
"""Bytes, of a new file: a row of the outbox with a kilobyte of data fits its page, which halves what reading costs."""
SCHEMA_VERSION = 2
OLDER_VERSIONS = (0, 1)
"""Files that lack tables only; what they should hold begins with what is written from now on."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS chain (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    chain_id INTEGER NOT NULL,
    checkpoint_number INTEGER NOT NULL,
    checkpoint_hash BLOB NOT NULL,
    fence INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS beginning ( -- behind which everything is here, where that is not the checkpoint
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    sequence INTEGER NOT NULL -- of its step
);
CREATE TABLE IF NOT EXISTS step (
    sequence INTEGER PRIMARY KEY,
    step TEXT NOT NULL,
    number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    parent BLOB NOT NULL,
    trust TEXT NOT NULL,
    finality TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS step_number ON step (number);
CREATE INDEX IF NOT EXISTS step_finalized ON step (sequence) WHERE step = 'final' AND finality = 'finalized';
CREATE TABLE IF NOT EXISTS block (
    hash BLOB PRIMARY KEY,
    number INTEGER NOT NULL,
    sequence INTEGER NOT NULL, -- of the last step that applies or undoes it
    raw BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS block_number ON block (number);
CREATE TABLE IF NOT EXISTS header ( -- of every block ever applied: they link evidence to a hash that somebody trusts
    hash BLOB PRIMARY KEY,
    number INTEGER NOT NULL,
    parent BLOB NOT NULL,
    timestamp INTEGER NOT NULL,
    raw BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS header_number ON header (number);
CREATE TABLE IF NOT EXISTS reader (
    name TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS outbox (
    sequence INTEGER NOT NULL,
    log_index INTEGER NOT NULL,
    step TEXT NOT NULL,
    trust TEXT NOT NULL,
    number INTEGER NOT NULL,
    hash BLOB NOT NULL,
    timestamp INTEGER NOT NULL,
    transaction_index INTEGER NOT NULL,
    transaction_hash BLOB,
    address BLOB NOT NULL,
    topics BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (sequence, log_index)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS outbox_topics ON outbox (topics);
CREATE INDEX IF NOT EXISTS outbox_timestamp ON outbox (timestamp);
CREATE TABLE IF NOT EXISTS failure ( -- polls that found nothing to believe, for people who look after the follower
    reason TEXT PRIMARY KEY,
    count INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS delivered (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sequence INTEGER NOT NULL
);
"""


class Database:
    """One connection per thread and process: SQLite's may not be carried into another."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._opened = threading.local()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._refuse(str(error)) from error
        with self.transaction() as connection:
            self._prepare(connection)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (*OLDER_VERSIONS, SCHEMA_VERSION):
            raise self._refuse(f"version {version}, not {SCHEMA_VERSION}")
        for statement in filter(str.strip, SCHEMA.split(";")):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def close(self) -> None:
        """Let go of every thread's connection, which closes it once it is out of use; who asks again gets a new one."""
        self._opened = threading.local()

    def get_version(self) -> int:
        """Another number after every commit by another connection than this thread's."""
        with self._use() as connection:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """Alone in writing; on disk at the end, or undone."""
        return self._run("BEGIN IMMEDIATE")

    def snapshot(self) -> AbstractContextManager[sqlite3.Connection]:
        """One consistent view for reading; waits for nobody."""
        return self._run("BEGIN")

    @contextmanager
    def _run(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._use() as connection:
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection; what SQLite complains of becomes one of our errors."""
        try:
            yield self._connect()
        except sqlite3.OperationalError as error:  # a full disk, a lock that stays, a folder that is gone
            raise Unavailable(
                Reason.NOT_STORED,
                f"the feed `{self.path}` cannot be used now (`{error}`)",
                hint="look at the disk's space and permissions; nothing that was stored is lost, so try again then",
            ) from error
        except sqlite3.DatabaseError as error:
            raise self._refuse(str(error)) from error

    def _connect(self) -> sqlite3.Connection:
        if getattr(self._opened, "process", None) != os.getpid():
            connection = sqlite3.connect(self.path, timeout=WAIT_S_MAX, isolation_level=None)
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._opened.connection, self._opened.process = connection, os.getpid()
        opened: sqlite3.Connection = self._opened.connection
        return opened

    def _refuse(self, why: str) -> InvalidRequest:
        return InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"the feed `{self.path}` cannot be used (`{why}`)",
            hint="name another folder; this one holds something else",
        )

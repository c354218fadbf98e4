"""The sender's memory: every transaction is written down, signed, before it leaves.

One SQLite file serves every key and every chain of a user. A row is one promise (an idempotency key) with its nonce;
its attempts are the signed transactions that may fulfil it, of which the chain can accept one only because they share
the nonce. A chain is told apart by the hash of its first block: development chains reuse chain ids, and start their
nonces anew.

States: `open` until a receipt is seen, `mined` with that receipt, `lost` when another program used the nonce. A promise
that the node refused outright is deleted, and its nonce free again. `hold()` keeps everybody else of the same key out
while a nonce is taken, written down and sent, so that nonces leave in order and a refusal is known to be one.
"""

import fcntl
import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from proofcast.errors import InvalidRequest, Reason
from proofcast.onchain.request import Request

WAIT_S_MAX = 30.0
"""For another process that is signing; one signature takes milliseconds."""

SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS promise (
    id INTEGER PRIMARY KEY,
    chain BLOB NOT NULL,
    sender BLOB NOT NULL,
    key TEXT NOT NULL,
    intent BLOB NOT NULL,
    target BLOB,
    data BLOB NOT NULL,
    value TEXT NOT NULL,
    nonce INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'open',
    receipt TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS promise_key ON promise (chain, sender, key);
CREATE UNIQUE INDEX IF NOT EXISTS promise_nonce ON promise (chain, sender, nonce);
CREATE TABLE IF NOT EXISTS attempt (
    promise INTEGER NOT NULL REFERENCES promise (id),
    hash BLOB PRIMARY KEY,
    raw BLOB NOT NULL,
    gas_limit INTEGER NOT NULL,
    max_fee INTEGER NOT NULL,
    tip INTEGER NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A signed transaction."""

    hash: bytes
    raw: bytes
    gas_limit: int
    max_fee_wei: int
    tip_wei: int


@dataclass(frozen=True, slots=True)
class Promise:
    """A transaction that was journalled; at most one of its attempts is ever mined."""

    id: int
    key: str
    intent: bytes
    """Hash of what was asked for, so that a key cannot be used for something else."""
    request: Request
    nonce: int
    receipt: str | None
    """As the node sent it, once mined."""
    attempts: tuple[Attempt, ...]
    """Oldest first."""

    def with_attempt(self, attempt: Attempt) -> "Promise":
        return replace(self, attempts=(*self.attempts, attempt))


class Journal:
    """The promises of one key on one chain; safe to use from several threads and processes."""

    def __init__(self, folder: Path, chain: bytes, sender: bytes) -> None:
        self._file, self._chain, self._sender = folder / "sender.sqlite", chain, sender
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file.touch(mode=0o600)
            with self._transaction() as database:
                self._prepare(database)
        except (OSError, sqlite3.DatabaseError) as error:
            raise refuse_journal(self._file, str(error)) from error

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Create the tables in a new file, and refuse one with other tables."""
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA_VERSION):
            raise refuse_journal(self._file, f"version {version}, not {SCHEMA_VERSION}")
        for statement in filter(str.strip, SCHEMA.split(";")):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection that holds the write lock; committed to disk at the end, or undone."""
        database = sqlite3.connect(self._file, timeout=WAIT_S_MAX, isolation_level=None)
        try:
            database.execute("PRAGMA synchronous = FULL")
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        finally:
            database.close()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other threads and processes with the same key out; a crash lets go by itself."""
        name = hashlib.sha256(self._chain + self._sender).hexdigest()[:16]
        with (self._file.parent / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def open_promise(
        self, key: str, intent: bytes, request: Request, first: int, sign: Callable[[int], Attempt]
    ) -> Promise:
        """Take the lowest free nonce from `first` on, sign for it and write both down."""
        with self._transaction() as database:
            nonce = self._find_free(database, first)
            attempt = sign(nonce)
            what = (intent, request.to, request.data, str(request.value), nonce)
            cursor = database.execute(
                "INSERT INTO promise (chain, sender, key, intent, target, data, value, nonce)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self._chain, self._sender, key, *what),
            )
            promise_id = int(cursor.lastrowid or 0)
            insert_attempt(database, promise_id, attempt)
            return Promise(promise_id, key, intent, request, nonce, None, (attempt,))

    def add_attempt(self, promise: Promise, attempt: Attempt) -> None:
        with self._transaction() as database:
            insert_attempt(database, promise.id, attempt)

    def find(self, key: str) -> Promise | None:
        with self._transaction() as database:
            return self._find(database, key)

    def list_unsettled(self, count: int) -> list[Promise]:
        """Promises that a chain with `count` transactions of the key may lack: never seen, or reorganised away."""
        with self._transaction() as database:
            rows = database.execute(
                "SELECT key FROM promise WHERE chain = ? AND sender = ?"
                " AND (state = 'open' OR state = 'mined' AND nonce >= ?) ORDER BY nonce",
                (self._chain, self._sender, count),
            ).fetchall()
            return [promise for (key,) in rows if (promise := self._find(database, key))]

    def keep_receipt(self, promise: Promise, receipt: str) -> None:
        with self._transaction() as database:
            database.execute("UPDATE promise SET state = 'mined', receipt = ? WHERE id = ?", (receipt, promise.id))

    def mark_lost(self, promise: Promise) -> None:
        """Another program used the nonce."""
        with self._transaction() as database:
            database.execute("UPDATE promise SET state = 'lost' WHERE id = ? AND state = 'open'", (promise.id,))

    def forget(self, promise: Promise) -> None:
        """The node refused it before anybody else could see it: it never was."""
        with self._transaction() as database:
            database.execute("DELETE FROM attempt WHERE promise = ?", (promise.id,))
            database.execute("DELETE FROM promise WHERE id = ?", (promise.id,))

    def _find(self, database: sqlite3.Connection, key: str) -> Promise | None:
        row = database.execute(
            "SELECT id, intent, target, data, value, nonce, receipt FROM promise"
            " WHERE chain = ? AND sender = ? AND key = ?",
            (self._chain, self._sender, key),
        ).fetchone()
        if row is None:
            return None
        promise_id, intent, target, data, value, nonce, receipt = row
        attempts = database.execute(
            "SELECT hash, raw, gas_limit, max_fee, tip FROM attempt WHERE promise = ? ORDER BY rowid", (promise_id,)
        ).fetchall()
        request = Request(target, data, int(value))
        return Promise(promise_id, key, intent, request, nonce, receipt, tuple(Attempt(*kept) for kept in attempts))

    def _find_free(self, database: sqlite3.Connection, first: int) -> int:
        rows = database.execute(
            "SELECT nonce FROM promise WHERE chain = ? AND sender = ? AND nonce >= ?",
            (self._chain, self._sender, first),
        )
        taken = {nonce for (nonce,) in rows}
        return next(nonce for nonce in range(first, first + len(taken) + 1) if nonce not in taken)


def refuse_journal(file: Path, why: str) -> InvalidRequest:
    return InvalidRequest(
        Reason.BAD_ARGUMENT,
        f"the journal `{file}` cannot be used (`{why}`)",
        hint="it guards against sending twice, so keep it; name another folder with `PROOFCAST_STATE_DIR`",
    )


def insert_attempt(database: sqlite3.Connection, promise_id: int, attempt: Attempt) -> None:
    database.execute(
        "INSERT OR IGNORE INTO attempt (promise, hash, raw, gas_limit, max_fee, tip) VALUES (?, ?, ?, ?, ?, ?)",
        (promise_id, attempt.hash, attempt.raw, attempt.gas_limit, attempt.max_fee_wei, attempt.tip_wei),
    )

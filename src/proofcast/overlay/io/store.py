"""What a peer keeps over a restart: its key, its subscriptions, the peers it knew, and what it has delivered."""

import os
import secrets
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.overlay.codec import encode_event, parse_event
from proofcast.overlay.identity import Contact
from proofcast.overlay.records import Event
from proofcast.overlay.seen import Mark

SEED_BYTES = 32
INBOX_MAX = 10_000
"""Events kept for one subscription until they are taken; later ones are lost to it, and counted."""
SCHEMA = """
PRAGMA locking_mode=EXCLUSIVE;
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS marks (
  publisher BLOB, session TEXT, newest TEXT, window BLOB, PRIMARY KEY (publisher, session)
);
CREATE TABLE IF NOT EXISTS subscriptions (predicate TEXT PRIMARY KEY, since REAL);
CREATE TABLE IF NOT EXISTS kept (predicate TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS inbox (number INTEGER PRIMARY KEY AUTOINCREMENT, predicate TEXT, event BLOB);
CREATE TABLE IF NOT EXISTS contacts (public_key BLOB PRIMARY KEY, address TEXT, signature BLOB);
"""


class PeerStore:
    """One folder for one peer; a second process on the same folder is refused."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.seed = read_seed(folder / "identity.seed")
        self._database = sqlite3.connect(folder / "peer.sqlite", isolation_level=None, timeout=1.0)
        try:
            self._database.executescript(SCHEMA)
        except sqlite3.OperationalError:
            self._database.close()
            hint = "stop it, or give this one a folder of its own with `--state`"
            raise Unavailable(Reason.NOT_YET, f"another peer uses the folder `{folder}`", hint=hint) from None

    def close(self) -> None:
        self._database.close()

    def save_delivery(self, mark: Mark, event: Event, kept_for: Iterable[str]) -> int:
        """The mark and the event together: one that is marked is never delivered again. Says how many were lost."""
        lost = 0
        self._database.execute("BEGIN")
        self.save_mark(mark)
        for predicate in kept_for:
            if self.count_inbox(predicate) < INBOX_MAX:
                row = (predicate, encode_event(event))
                self._database.execute("INSERT INTO inbox (predicate, event) VALUES (?, ?)", row)
            else:
                lost += 1
        self._database.execute("COMMIT")
        return lost

    def save_kept(self, predicate: str) -> None:
        self._database.execute("INSERT OR IGNORE INTO kept VALUES (?)", (predicate,))

    def load_kept(self) -> list[str]:
        return [predicate for (predicate,) in self._database.execute("SELECT predicate FROM kept")]

    def count_inbox(self, predicate: str) -> int:
        (count,) = self._database.execute("SELECT COUNT(*) FROM inbox WHERE predicate = ?", (predicate,)).fetchone()
        return int(count)

    def read_inbox(self, predicate: str, count: int) -> list[tuple[int, Event]]:
        """The oldest that were not taken, with their numbers."""
        query = "SELECT number, event FROM inbox WHERE predicate = ? ORDER BY number LIMIT ?"
        return [(number, parse_event(event)) for number, event in self._database.execute(query, (predicate, count))]

    def empty_inbox(self, predicate: str, number: int) -> None:
        """What was kept up to this number is taken."""
        self._database.execute("DELETE FROM inbox WHERE predicate = ? AND number <= ?", (predicate, number))

    def save_mark(self, mark: Mark) -> None:
        window = mark.window.to_bytes((mark.window.bit_length() + 7) // 8)
        row = (mark.publisher, str(mark.session), str(mark.newest), window)
        self._database.execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?)", row)

    def load_marks(self) -> tuple[Mark, ...]:
        rows = self._database.execute("SELECT publisher, session, newest, window FROM marks ORDER BY rowid")
        return tuple(
            Mark(publisher, int(session), int(newest), int.from_bytes(window))
            for publisher, session, newest, window in rows
        )

    def save_subscription(self, predicate: str, since: float) -> None:
        self._database.execute("INSERT OR IGNORE INTO subscriptions VALUES (?, ?)", (predicate, since))

    def delete_subscription(self, predicate: str) -> None:
        for table in ("subscriptions", "kept", "inbox"):
            self._database.execute(f"DELETE FROM {table} WHERE predicate = ?", (predicate,))

    def load_subscriptions(self) -> list[tuple[str, float]]:
        return list(self._database.execute("SELECT predicate, since FROM subscriptions ORDER BY rowid"))

    def save_contacts(self, contacts: Iterable[Contact]) -> None:
        """Replace what is stored, so that a restart begins with peers that were there lately."""
        self._database.execute("BEGIN")
        self._database.execute("DELETE FROM contacts")
        rows = [(contact.public_key, contact.address, contact.signature) for contact in contacts]
        self._database.executemany("INSERT INTO contacts VALUES (?, ?, ?)", rows)
        self._database.execute("COMMIT")

    def load_contacts(self) -> list[Contact]:
        rows = self._database.execute("SELECT public_key, address, signature FROM contacts")
        return [Contact(public_key, address, signature) for public_key, address, signature in rows]


def read_seed(path: Path) -> bytes:
    """The private key; made on first use, readable by its owner alone."""
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SEED_BYTES))
    seed = path.read_bytes()
    if len(seed) != SEED_BYTES:
        message = f"`{path}` holds `{len(seed)}` bytes instead of `{SEED_BYTES}`"
        raise InvalidRequest(Reason.BAD_KEY, message, hint="restore it from a copy, or remove it for a new identity")
    return seed


def make_session() -> int:
    """Larger than that of any run before, as long as the clock goes forward."""
    return time.time_ns()


def draw_entropy() -> int:
    return secrets.randbits(256)

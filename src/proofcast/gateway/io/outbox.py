"""What a gateway has read and not yet handed over, on disk: each event with the id that it has in the overlay.

An event and the broker's cursor behind it are written in one transaction, before anything is sent. So a gateway that is
killed goes on reading where it was, and sends what was waiting once more with the same id: the overlay takes that for a
repetition and delivers nothing twice.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofcast.errors import InvalidRequest, Reason, Unavailable

SCHEMA = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
CREATE TABLE IF NOT EXISTS state (
  one INTEGER PRIMARY KEY CHECK (one = 1), source TEXT NOT NULL, session TEXT NOT NULL, cursor TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS waiting (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT, born_ms INTEGER NOT NULL, attributes TEXT NOT NULL, payload BLOB NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    sequence: int
    born_ms: int
    attributes: str
    payload: bytes


class CarryingStore:
    """One file for one gateway; open it once in each thread."""

    def __init__(self, file: Path, source: str) -> None:
        """`source` says what is carried: a file of another source is refused."""
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = file
        with self._storing():
            self._database = sqlite3.connect(file, isolation_level=None, timeout=10.0)
            self._database.executescript(SCHEMA)
            row = (source, str(time.time_ns()), "")
            self._database.execute("INSERT OR IGNORE INTO state VALUES (1, ?, ?, ?)", row)
            found, session = self._database.execute("SELECT source, session FROM state").fetchone()
        if found != source:
            message = f"`{file}` belongs to a gateway of `{found}`, not of `{source}`"
            raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="name another `--state`, or what it began with")
        self.session = int(session)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            message = f"`{self._file}` cannot be used (`{error}`)"
            hint = "look at its permissions and make room on the disk, or name another `--state`"
            raise Unavailable(Reason.NOT_STORED, message, hint=hint) from error

    def get_cursor(self) -> str:
        """Where reading goes on; empty before the first event."""
        (cursor,) = self._database.execute("SELECT cursor FROM state").fetchone()
        return str(cursor)

    def add(self, cursor: str, attributes: str, payload: bytes) -> None:
        row = (time.time_ns() // 1_000_000, attributes, payload)
        with self._storing(), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("INSERT INTO waiting (born_ms, attributes, payload) VALUES (?, ?, ?)", row)
            self._database.execute("UPDATE state SET cursor = ?", (cursor,))

    def pass_over(self, cursor: str) -> None:
        with self._storing():
            self._database.execute("UPDATE state SET cursor = ?", (cursor,))

    def read(self, count: int) -> list[Waiting]:
        """The oldest that wait."""
        rows = self._database.execute(
            "SELECT sequence, born_ms, attributes, payload FROM waiting ORDER BY sequence LIMIT ?", (count,)
        )
        return [Waiting(*row) for row in rows]

    def count(self) -> int:
        (count,) = self._database.execute("SELECT COUNT(*) FROM waiting").fetchone()
        return int(count)

    def get_last(self) -> int:
        """Number of the newest that was ever written down; 0 before the first."""
        row = self._database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'waiting'").fetchone()
        return int(row[0]) if row else 0

    def remove(self, sequence: int) -> None:
        """The overlay has it."""
        with self._storing():
            self._database.execute("DELETE FROM waiting WHERE sequence = ?", (sequence,))

"""The outbox in SQLite, in the same file as the journal: written by whoever matches logs, read by whoever delivers."""

from collections.abc import Iterable
from pathlib import Path

from proofcast.feed.io.database import Database
from proofcast.feed.outbox import OutboxRow, encode_row, parse_row

READ_MAX = 1_024
"""Rows read at a time."""
START = (0, -1)
"""Before the first row."""


class Outbox:
    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)

    def close(self) -> None:
        self._database.close()

    def get_sequence(self) -> int:
        """The last step of which every row is written: where a writer goes on, whatever else it has lost."""
        with self._database.snapshot() as connection:
            row = connection.execute("SELECT sequence FROM delivered").fetchone()
        return int(row[0]) if row else 0

    def write(self, rows: Iterable[OutboxRow], up_to_sequence: int) -> int:
        """Write the rows of all steps up to one, all or nothing; says how many were new."""
        with self._database.transaction() as connection:
            before = connection.total_changes
            connection.executemany(
                "INSERT OR IGNORE INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", map(encode_row, rows)
            )
            written = connection.total_changes - before
            connection.execute(
                "INSERT INTO delivered VALUES (1, ?)"
                " ON CONFLICT (id) DO UPDATE SET sequence = max(sequence, excluded.sequence)",
                (up_to_sequence,),
            )
        return written

    def read(self, chain_id: int, after: tuple[int, int] = START, limit: int = READ_MAX) -> list[OutboxRow]:
        """Rows behind (sequence, log index), in order."""
        with self._database.snapshot() as connection:
            rows = connection.execute(
                "SELECT * FROM outbox WHERE (sequence, log_index) > (?, ?) ORDER BY sequence, log_index LIMIT ?",
                (*after, limit),
            ).fetchall()
        return [parse_row(row, chain_id) for row in rows]

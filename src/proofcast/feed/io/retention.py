"""Forgetting the oldest part of a feed: events, blocks and headers of which nobody wants evidence any more.

Only what is final and what every reader of the journal has passed is forgotten, whole blocks at a time, so the feed
begins behind a block as it always does. Who comes with an older cursor is told that its block is not here.
"""

from pathlib import Path

from proofcast.chain.segment import BlockId
from proofcast.feed.io.database import Database
from proofcast.feed.io.history import read_beginning, read_chain
from proofcast.feed.io.sqlite import read_state

STRETCH = 10_000
"""Blocks forgotten at a time, so that nobody waits long to write."""


class Retention:
    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)

    def close(self) -> None:
        self._database.close()

    def forget_before(self, timestamp: int) -> int:
        """Forget blocks made before a time, at most one stretch of them; says how many."""
        return self._forget(f"timestamp < {int(timestamp)}", STRETCH)

    def shrink(self, size_max: int) -> int:
        """Forget a tenth of the blocks, at most one stretch, if more bytes are in use; says how many."""
        with self._database.snapshot() as connection:
            pages, free, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
            (count,) = connection.execute("SELECT count(*) FROM header").fetchone()
        return self._forget("1", min(STRETCH, 1 + count // 10)) if (pages - free) * size > size_max else 0

    def _forget(self, condition: str, limit: int) -> int:
        """Blocks from the beginning on that fulfil a condition."""
        with self._database.transaction() as connection:
            beginning, _ = read_beginning(connection)
            finalized = read_state(connection, read_chain(connection)[1]).finalized
            (passed,) = connection.execute("SELECT min(sequence) FROM reader").fetchone()
            row = connection.execute(
                "SELECT number, hash, sequence FROM step WHERE step = 'apply' AND number = ("
                f" SELECT max(number) FROM header WHERE {condition} AND number > ? AND number <= ? AND number < ?)"
                " AND sequence <= coalesce(?, sequence) ORDER BY sequence DESC LIMIT 1",
                (beginning.number, beginning.number + limit, finalized.number, passed),
            ).fetchone()
            if row is None:
                return 0
            connection.execute("INSERT OR REPLACE INTO beginning VALUES (1, ?, ?, ?)", row)
            for table in ("block", "header", "outbox"):
                connection.execute(f"DELETE FROM {table} WHERE number <= ?", (row[0],))
            connection.execute("DELETE FROM step WHERE number <= ? AND step != 'final'", (row[0],))
        return BlockId(row[0], row[1]).number - beginning.number

"""Forgetting the oldest part of a feed: events, blocks and headers of which nobody wants evidence any more.

Only what is final and what every reader of the journal has passed is forgotten, whole blocks at a time, so the feed
begins behind a block as it always does. Who comes with an older cursor is told that its block is not here. Names of
topics, exchanges and queues stay known.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from proofcast.chain.segment import BlockId
from proofcast.feed.io.database import Database
from proofcast.feed.io.history import read_beginning, read_chain
from proofcast.feed.io.sqlite import read_state
from proofcast.onchain.events import PayloadTypeChanged, TopicCreated, compute_type_hash
from proofcast.onchain.exchange_events import ExchangeCreated, QueueCreated, compute_exchange_type_hash

SECONDS_PER_DAY = 86_400
NAMING = (
    compute_type_hash(TopicCreated),
    compute_type_hash(PayloadTypeChanged),
    compute_exchange_type_hash(ExchangeCreated),
    compute_exchange_type_hash(QueueCreated),
)
"""Logs that stay: a topic is older than its events, and nobody would know its name."""
STRETCH = 10_000
"""Blocks forgotten at a time, so that nobody waits long to write."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is kept; None keeps everything."""

    days: float | None = None
    megabytes: int | None = None


def trim_feed(folder: Path, limits: Limits, now_s: float) -> int:
    """Forget everything beyond the limits, stretch by stretch; says how many blocks."""
    retention, count = Retention(folder), 0
    with closing(retention):
        if limits.days is not None:
            before = int(now_s - limits.days * SECONDS_PER_DAY)
            count += sum(iter(lambda: retention.forget_before(before), 0))
        if limits.megabytes is not None:
            size_max = limits.megabytes << 20
            count += sum(iter(lambda: retention.shrink(size_max), 0))
    return count


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
            for table in ("block", "header"):
                connection.execute(f"DELETE FROM {table} WHERE number <= ?", (row[0],))
            connection.execute(
                "DELETE FROM outbox WHERE number <= ? AND substr(topics, 1, 32) NOT IN (?, ?, ?, ?)", (row[0], *NAMING)
            )
            connection.execute("DELETE FROM step WHERE number <= ? AND step != 'final'", (row[0],))
        return BlockId(row[0], row[1]).number - beginning.number

"""Pipelines to test: sessions that start quickly, tables whose writer dies, processes to be killed.

    python -m proofcast.testing.pipeline backfill SOURCE FOLDER
    python -m proofcast.testing.pipeline follow SOURCE FOLDER UNTIL

Both say what they do, line by line, so that whoever started them can kill them at a line.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from proofcast.chain.io.source import open_source
from proofcast.chain.segment import BlockId
from proofcast.chain.source import BlockSource
from proofcast.ethereum.header import parse_header
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.sqlite import Journal
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.files import TableFile
from proofcast.pipeline.io.outbox import OutboxSink
from proofcast.pipeline.io.session import build_session
from proofcast.pipeline.io.sink import TableSink
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.backfill import backfill
from proofcast.pipeline.jobs.follow import follow
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.schemas import Table

QUICK_SETTINGS = {
    "spark.driver.memory": "1g",
    # The second compiler of the JVM pays off after minutes, which no test lasts.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Compiling a plan costs more than interpreting it over a few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
BLOCKS_PER_BATCH = 3
TABLES_EVERY_S = 0.5
POLL_S = 0.02


# --- dying within a process


class SimulatedCrash(Exception):
    """The end of a process as far as the tables can see."""


@dataclass(frozen=True, slots=True)
class CrashingTables(Tables):
    """Dies before the append with this number, counted from 0 through all batches."""

    crash_at: int
    _appended: list[Table] = field(default_factory=list)

    def append(self, spark: SparkSession, table: Table, files: Sequence[TableFile], end: Offset) -> None:
        if len(self._appended) == self.crash_at:
            raise SimulatedCrash(f"before append {self.crash_at}, to {table}")
        self._appended.append(table)
        Tables.append(self, spark, table, files, end)


# --- being killed


class AnnouncingTables(Tables):
    """Says when an append begins and when it has ended."""

    def append(self, spark: SparkSession, table: Table, files: Sequence[TableFile], end: Offset) -> None:
        announce(f"begin {table}")
        Tables.append(self, spark, table, files, end)
        announce(f"end {table}")


def announce(line: str) -> None:
    print(line, flush=True)


def run_killable(arguments: Sequence[str], kill_at: int | None) -> int:
    """Run one of this module's jobs; kill it and all it has started at the line with this number. Lines it said."""
    command = [sys.executable, "-m", "proofcast.testing.pipeline", *arguments]
    said = 0
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=complaints, text=True, start_new_session=True
        ) as process,
    ):
        assert process.stdout
        for _ in process.stdout:
            said += 1
            if said == kill_at:
                os.killpg(process.pid, signal.SIGKILL)
                break
        process.stdout.close()
        code = process.wait()
        complaints.seek(0)
        assert code == (-signal.SIGKILL if said == kill_at else 0), (
            f"{arguments} ended with {code}: {complaints.read()}"
        )
    return said


def run_backfill(spark: SparkSession, source: str, folder: Path, scratch: str) -> None:
    options = {"source": source, "first": "1", "blocks_per_batch": str(BLOCKS_PER_BATCH), "blocks_per_partition": "2"}
    backfill(spark, AnnouncingTables(str(folder / "tables")), options, [get_own_abi()], scratch)


@dataclass(slots=True)
class Progress:
    outbox: int = 0
    tables: int = 0

    def note_outbox(self, end: Offset) -> None:
        self.outbox = end.sequence
        announce(f"outbox {end.sequence}")

    def note_tables(self, end: Offset) -> None:
        self.tables = end.sequence


def run_follow(spark: SparkSession, source: BlockSource, folder: Path, until: int, scratch: str) -> None:
    """Follow until the chain's head is this block and both sinks have everything that was journalled then."""
    feed, progress = folder / "feed", Progress()
    parent_hash = parse_header(source.get_headers(1, 1)[0]).parent_hash
    follower = FeedFollower(source, feed, BlockId(0, parent_hash))
    outbox = OutboxSink(feed, source.get_chain_id(), progress.note_outbox)
    tables = TableSink(spark, AnnouncingTables(str(folder / "tables")), [get_own_abi()], progress.note_tables)
    progress.outbox, progress.tables = outbox.end.sequence, tables.end.sequence if tables.end else 0
    queries = follow(spark, str(feed), outbox, tables, {}, scratch, TABLES_EVERY_S)
    journal = Journal(feed)

    def is_enough() -> bool:
        state = journal.read_state()
        everywhere = min(progress.outbox, progress.tables) >= state.sequence
        return not queries.are_running() or (state.head.number >= until and everywhere)

    try:
        follower.follow(is_enough, lambda: time.sleep(POLL_S))
    finally:
        queries.stop()


def main(job: str, source: str, folder: str, *until: str) -> None:
    spark = build_session("local[2]", QUICK_SETTINGS)
    with tempfile.TemporaryDirectory(prefix="proofcast-", ignore_cleanup_errors=True) as scratch:
        if job == "backfill":
            run_backfill(spark, source, Path(folder), scratch)
        else:
            run_follow(spark, open_source(source), Path(folder), int(until[0]), scratch)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

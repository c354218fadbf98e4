"""Near the head: journal, outbox and tables say the same as the chain, through reorgs."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from proofcast.chain.io.source import open_source
from proofcast.chain.segment import BlockId
from proofcast.ethereum.bloom import LogFilter
from proofcast.event import Finality, Step
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.feed.outbox import OutboxRow, build_rows
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.journal import register_reader
from proofcast.pipeline.io.outbox import OutboxSink
from proofcast.pipeline.io.sink import TableSink
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.follow import OUTBOX_READER, TABLES_READER, read_journal
from proofcast.pipeline.schemas import CHANGES, TASKS, Table
from proofcast.testing.chain import ChainSimulator, SimulatedNode

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]
SEED = 11


class Follower:
    """A simulated chain, its journal, and both sinks run over what is journalled now."""

    def __init__(self, spark: SparkSession, folder: Path, node: SimulatedNode) -> None:
        self.spark, self.feed, self.chain = spark, folder / "feed", node.chain
        genesis = BlockId(0, node.chain.canonical[0].hash)
        self.follower = FeedFollower(open_source(node.url), self.feed, genesis)
        self.tables = Tables(str(folder / "tables"))
        self.scratch = folder / "scratch"
        self.runs = 0
        for reader in (OUTBOX_READER, TABLES_READER):
            register_reader(str(self.feed), reader, None)

    def poll(self) -> None:
        while self.follower.poll():
            pass

    def drain_outbox(self, **wanted: str) -> None:
        sink = OutboxSink(self.feed, self.chain.chain_id, lambda end: None)
        changes = read_journal(self.spark, str(self.feed), OUTBOX_READER, sink.end, {"table": CHANGES, **wanted})
        self._drain(changes.writeStream.foreachBatch(sink.write))

    def drain_tables(self) -> None:
        sink = TableSink(self.spark, self.tables, [get_own_abi()], lambda end: None)
        steps = read_journal(self.spark, str(self.feed), TABLES_READER, sink.end, {"table": TASKS})
        self._drain(steps.writeStream.foreachBatch(sink.write))

    def _drain(self, writer) -> None:  # noqa: ANN001 # DataStreamWriter
        self.runs += 1
        place = str(self.scratch / str(self.runs))
        writer.option("checkpointLocation", place).trigger(availableNow=True).start().awaitTermination()

    def list_expected(self, log_filter: LogFilter) -> list[OutboxRow]:
        """By the plain functions."""
        entries = Journal(self.feed).read(0)
        return [row for entry in entries for row in build_rows(entry, self.chain.chain_id, log_filter)]

    def list_canonical(self, table: Table, finality: Finality, *columns: str) -> list[tuple[object, ...]]:
        rows = self.tables.read_canonical(self.spark, table, finality).select(*columns).orderBy(*columns).collect()
        return [tuple(bytes(value) if isinstance(value, bytearray) else value for value in row) for row in rows]


def test_reorgs_reach_outbox_and_tables_as_steps(spark: SparkSession, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    with SimulatedNode(ChainSimulator(SEED)) as node:
        run = Follower(spark, tmp_path, node)
        node.chain.mine(12)
        run.poll()
        run.drain_outbox()
        run.drain_tables()
        orphan = node.chain.head
        node.chain.reorg(3)
        run.poll()
        node.chain.mine(2)
        run.poll()
        run.drain_outbox()
        run.drain_tables()

        written = Outbox(run.feed).read(node.chain.chain_id)
        assert written == run.list_expected(LogFilter())
        assert Step.UNDO in {row.step for row in written}

        for finality in Finality:
            settled = node.chain.get_settled(finality).header.number
            blocks = node.chain.canonical[1 : settled + 1]
            found = run.list_canonical(Table.BLOCKS, finality, "number", "block_hash")
            assert found == [(block.header.number, block.hash) for block in blocks]
            logs = [(block.header.number, at, log.data) for block in blocks for at, log in enumerate(block.logs)]
            assert run.list_canonical(Table.LOGS, finality, "number", "log_index", "data") == logs

        steps = run.tables.read(spark, Table.BLOCKS)
        kept = steps.filter(steps.block_hash == orphan.hash).orderBy("sequence").collect()
        assert [row.step for row in kept] == [Step.APPLY, Step.UNDO]

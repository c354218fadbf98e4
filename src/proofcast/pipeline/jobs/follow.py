"""Near the head of the chain: what is journalled goes into the outbox at once and into the tables every few seconds.

These are two queries over one journal, each beginning where its own sink stands: a commit of the tables takes longer
than a subscriber should wait, and neither can lose what the other has.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from proofcast.chain.segment import BlockId
from proofcast.errors import InvalidRequest, Reason
from proofcast.pipeline.io.journal import register_reader
from proofcast.pipeline.io.outbox import OutboxSink
from proofcast.pipeline.io.sink import TableSink
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.schemas import CHANGES, TASKS

OUTBOX_READER, TABLES_READER = "outbox", "tables"
"""Names under which the journal keeps what each query has not read yet."""
TABLES_EVERY_S = 10.0
"""Often enough to look at, seldom enough that committing costs little."""


@dataclass(frozen=True, slots=True)
class FollowQueries:
    outbox: StreamingQuery
    tables: StreamingQuery

    def are_running(self) -> bool:
        return self.outbox.isActive and self.tables.isActive

    def stop(self) -> None:
        """Stop both; what a sink has not committed is read again next time. A query's failure is raised."""
        for query in (self.outbox, self.tables):
            query.stop()
        for query in (self.outbox, self.tables):
            query.awaitTermination()


def follow(
    spark: SparkSession,
    feed: str,
    outbox: OutboxSink,
    tables: TableSink,
    wanted: Mapping[str, str],
    scratch: str,
    tables_every_s: float = TABLES_EVERY_S,
) -> FollowQueries:
    """Start both queries; `wanted` are the options (addresses, topics) that choose logs for the outbox.

    The caller journals blocks only after this, or the journal may trim what a query has not asked for yet.
    """
    register_reader(feed, OUTBOX_READER, outbox.end)
    register_reader(feed, TABLES_READER, tables.end)
    changes = read_journal(spark, feed, OUTBOX_READER, outbox.end, {"table": CHANGES, **wanted})
    fast = changes.writeStream.foreachBatch(outbox.write).option("checkpointLocation", f"{scratch}/outbox")
    steps = read_journal(spark, feed, TABLES_READER, tables.end, {"table": TASKS})
    slow = steps.writeStream.foreachBatch(tables.write).option("checkpointLocation", f"{scratch}/tables")
    slow = slow.trigger(processingTime=f"{tables_every_s} seconds")
    first = start(spark, fast, OUTBOX_READER)
    # One after the other: each starts processes of its own, and Spark gives them ten seconds on a machine however busy.
    first.processAllAvailable()
    return FollowQueries(first, start(spark, slow, TABLES_READER))


def start(spark: SparkSession, writer: DataStreamWriter, pool: str) -> StreamingQuery:
    """Start a query whose tasks take turns with those of other pools."""
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
    try:
        return writer.start()
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", "default")


def read_journal(
    spark: SparkSession, feed: str, reader: str, after: Offset | None, options: Mapping[str, str]
) -> DataFrame:
    place = {"after": json.dumps(after.encode())} if after else {}
    return spark.readStream.format("evm").options(journal=feed, reader=reader, **options, **place).load()


def verify_joint(end: Offset | None, checkpoint: BlockId, folder: str) -> None:
    """Tables that were filled before must end where the journal begins."""
    if end is not None and end.sequence == 0 and end.block != checkpoint:
        raise InvalidRequest(
            Reason.NOT_ALLOWED,
            f"the tables `{folder}` end at block `{end.block}`, the journal begins at `{checkpoint}`",
            hint="name another folder for the feed, or follow into other tables",
        )

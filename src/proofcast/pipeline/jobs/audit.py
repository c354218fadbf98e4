"""Is what the tables hold still what the chain's headers commit to? Everything is recomputed from stored bytes.

For every block: the header has the block's hash and follows a block that is there; the receipts have the header's root
and pass all else that `proofcast.chain.verify` asks; the columns say what these bytes say; and the rows of `logs` are
the logs in those receipts, each once.
"""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from proofcast.pipeline.auditing import check_blocks, find_faults
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.schemas import Table
from proofcast.pipeline.transforms import is_after


@dataclass(frozen=True, slots=True)
class BadBlock:
    number: int
    hash: bytes
    fault: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    blocks: int
    logs: int
    first_bad: BadBlock | None


def audit(spark: SparkSession, tables: Tables) -> AuditReport:
    """Check what is whole; a run that was cut off may have left rows behind it, which no view shows."""
    end = tables.find_end(spark)
    if end is None:
        return AuditReport(0, 0, None)
    blocks = tables.read(spark, Table.BLOCKS)
    receipts, logs = (tables.read(spark, table).filter(~is_after(end)) for table in (Table.RECEIPTS, Table.LOGS))
    faults = find_faults(check_blocks(blocks, receipts), logs, blocks)
    bad = faults.orderBy("number", "rank", "block_hash", "fault").head()
    first_bad = BadBlock(bad["number"], bytes(bad["block_hash"]), bad["fault"]) if bad else None
    counts = blocks.filter("step = 'apply'").agg(sql.count("*").alias("blocks"), sql.sum("log_count").alias("logs"))
    (applied,) = counts.collect()
    return AuditReport(applied["blocks"], applied["logs"] or 0, first_bad)

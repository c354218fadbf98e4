"""An ABI onto logs that are in the tables already; doing it again adds only what is new."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from proofcast.pipeline.decoding import Abi, decode_logs
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.schemas import Table

KEY = ["sequence", "block_hash", "log_index"]


def decode(spark: SparkSession, tables: Tables, abi: Abi) -> int:
    """How many events were added. Orphaned logs are decoded too: a step that is undone was there."""
    logs = tables.read(spark, Table.LOGS)
    known = tables.read(spark, Table.EVENTS).filter(sql.col("abi") == abi.name).select(*KEY)
    events = decode_logs(logs.join(known, KEY, "left_anti"), abi).persist()
    try:
        added = events.count()
        if added:
            tables.append_events(events)
        return added
    finally:
        events.unpersist()

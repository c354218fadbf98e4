"""Events that are in the tables already against subscriptions: which of them each is wanted by."""

from pyspark.sql import DataFrame, SparkSession

from proofcast.event import Finality
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.matching import Wanted, match_events
from proofcast.pipeline.schemas import Table


def match(spark: SparkSession, tables: Tables, wanted: Wanted, finality: Finality = Finality.LATEST) -> DataFrame:
    """A row per event of the canonical chain that somebody wants, in the chain's order."""
    events = tables.read_canonical(spark, Table.EVENTS, finality)
    found = match_events(events, spark.sparkContext.broadcast(wanted))
    return found.orderBy("number", "log_index", "abi")

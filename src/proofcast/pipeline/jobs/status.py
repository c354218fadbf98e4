"""What the tables hold."""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from proofcast.event import Finality, Step
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.schemas import Table
from proofcast.pipeline.transforms import compute_last_place, compute_settled


@dataclass(frozen=True, slots=True)
class TableStatus:
    chain_id: int
    first: int
    end: Offset
    """The last step in all tables."""
    safe: int
    finalized: int
    """Numbers of the last blocks so settled; -1 where none is."""
    blocks: int
    logs: int
    """Of all steps, those that were undone included."""
    undone: int


def find_status(spark: SparkSession, tables: Tables) -> TableStatus | None:
    """None where there is nothing yet."""
    if not tables.exists(spark):
        return None
    blocks = tables.read(spark, Table.BLOCKS)
    applies, undoes = (sql.col("step") == step.value for step in (Step.APPLY, Step.UNDO))
    facts = blocks.agg(
        compute_last_place(),
        sql.max("chain_id").alias("chain_id"),
        sql.min("number").alias("first"),
        sql.count_if(applies).alias("blocks"),
        sql.count_if(undoes).alias("undone"),
        sql.coalesce(sql.sum(sql.when(applies, sql.col("log_count"))), sql.lit(0)).alias("logs"),
    )
    settled = [
        compute_settled(blocks, finality).withColumnRenamed("settled", finality.value)
        for finality in (Finality.SAFE, Finality.FINALIZED)
    ]
    row = facts.crossJoin(settled[0]).crossJoin(settled[1]).head()
    if row is None or row["place"] is None:
        return None
    place = row["place"]
    return TableStatus(
        chain_id=row["chain_id"],
        first=row["first"],
        end=Offset(place["sequence"], place["number"], bytes(place["block_hash"])),
        safe=row["safe"],
        finalized=row["finalized"],
        blocks=row["blocks"],
        logs=row["logs"],
        undone=row["undone"],
    )

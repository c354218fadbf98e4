"""From frames to frames: places in tables of steps, and the canonical chain in them."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from proofcast.event import Finality, Step
from proofcast.pipeline.offsets import Offset

SETTLING = {Finality.SAFE: (Finality.SAFE, Finality.FINALIZED), Finality.FINALIZED: (Finality.FINALIZED,)}
"""Which steps settle a block: what is finalized is safe too."""


# --- places


def is_after(offset: Offset) -> Column:
    """Rows of later steps than the one the offset names."""
    sequence, number = sql.col("sequence"), sql.col("number")
    return (sequence > offset.sequence) | ((sequence == offset.sequence) & (number > offset.number))


def compute_last_place() -> Column:
    """Of the last step among rows, to aggregate by; null where there are none."""
    return sql.max(sql.struct("sequence", "number", "block_hash")).alias("place")


# --- the canonical chain


def select_canonical(rows: DataFrame, blocks: DataFrame, finality: Finality) -> DataFrame:
    """The rows of blocks that are on the chain now, as far up as they are so settled.

    `blocks` is the table of that name, whose rows are the steps. A row stands if no later step undoes its block, if its
    batch is whole, and if its block is not above the settled one.
    """
    undone = blocks.filter(sql.col("step") == Step.UNDO.value).select(
        sql.col("block_hash").alias("undone_hash"), sql.col("sequence").alias("undone_at")
    )
    is_undone = (sql.col("block_hash") == sql.col("undone_hash")) & (sql.col("sequence") < sql.col("undone_at"))
    bounds = sql.broadcast(compute_bounds(blocks, finality))
    standing = rows.join(sql.broadcast(undone), is_undone, "left_anti").crossJoin(bounds)
    place, end = sql.struct("sequence", "number"), sql.struct("end_sequence", "end_number")
    whole = standing.filter((sql.col("number") <= sql.col("settled")) & (place <= end))
    kept = whole.filter(sql.col("step") == Step.APPLY.value) if "step" in rows.columns else whole
    return kept.select(*rows.columns)


def compute_bounds(blocks: DataFrame, finality: Finality) -> DataFrame:
    """One row: the last step of the tables, and the number of the last block that is so settled."""
    end = blocks.agg(compute_last_place()).selectExpr("place.sequence AS end_sequence", "place.number AS end_number")
    if finality is Finality.LATEST:
        return end.crossJoin(blocks.agg(sql.max("number").alias("settled")))
    return end.crossJoin(compute_settled(blocks, finality))


def compute_settled(blocks: DataFrame, finality: Finality) -> DataFrame:
    """The highest block that a `final` step named, unless a later `undo` went below it (only a safe one can be)."""
    settles = (sql.col("step") == Step.FINAL.value) & sql.col("finality").isin([*SETTLING[finality]])
    undoes = sql.col("step") == Step.UNDO.value
    later = Window.orderBy(sql.desc("sequence")).rowsBetween(Window.unboundedPreceding, 0)
    marks = blocks.filter(settles | undoes).withColumn(
        "lowest_undone", sql.min(sql.when(undoes, sql.col("number"))).over(later)
    )
    settled = sql.least(sql.col("number"), sql.col("lowest_undone") - 1)
    return marks.filter(settles).agg(sql.coalesce(sql.max(settled), sql.lit(-1)).alias("settled"))

"""Stored bytes checked again: from rows of `blocks` and `receipts` to faults and to the logs that should be there."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from proofcast.chain.profile import get_profile
from proofcast.chain.verify import VerifiedBlock, verify_block
from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum.block import RawBlock
from proofcast.event import Step
from proofcast.pipeline.rows import BLOCK_VALUES, Value, build_log_column, count_logs
from proofcast.pipeline.schemas import BYTES, LOG, NUMBER, STEP, TEXT, convert_schema

KEY = [("sequence", NUMBER), ("number", NUMBER), ("block_hash", BYTES)]
KEY_COLUMNS = [name for name, _ in KEY]
LOG_COLUMNS = [name for name, _ in LOG]
FACTS = ("time", *(name for name, _ in STEP if name not in ("step", "finality", "chain_id")))
CHECKED = pa.schema([*KEY, ("fault", TEXT), *LOG])
"""A row per block, whose `fault` is null where nothing is wrong, and a row per log in its receipts."""


@dataclass(frozen=True, slots=True)
class StoredBlock:
    sequence: int
    number: int
    block_hash: bytes
    chain_id: int
    raws: list[bytes] | None
    """The receipts; None where the table has none for this block."""
    facts: dict[str, Value]
    """The columns that repeat what the header says."""


# --- in Spark


def check_blocks(blocks: DataFrame, receipts: DataFrame) -> DataFrame:
    """Every applied block and its receipts, recomputed."""
    applied = blocks.filter(sql.col("step") == Step.APPLY.value)
    stored = applied.join(receipts.select("sequence", "block_hash", "receipts"), ["sequence", "block_hash"], "left")
    raws = sql.transform("receipts", lambda receipt: receipt["raw"]).alias("raws")
    names = [*KEY_COLUMNS, *(name for name, _ in STEP)]
    checked = stored.select(*names, sql.unix_micros("time").alias("time"), raws)
    return checked.mapInArrow(check_batches, convert_schema(CHECKED))


def find_faults(checked: DataFrame, logs: DataFrame, blocks: DataFrame) -> DataFrame:
    """What was found by checking, parents that are not there, logs that differ; `rank` is this order.

    The logs of a block that is bad in itself differ too, so that is said last.
    """
    digest = sql.xxhash64(*LOG_COLUMNS).alias("digest")
    expected = checked.filter("log_index is not null").select(*KEY_COLUMNS, digest, sql.lit(1).alias("sign"))
    present = logs.select(*KEY_COLUMNS, digest, sql.lit(-1).alias("sign"))
    unequal = expected.unionByName(present).groupBy(*KEY_COLUMNS, "digest").agg(sql.sum("sign").alias("excess"))
    said = sql.when(sql.col("excess") > 0, "a log of its receipts is not in `logs`").otherwise(
        "`logs` has a log that is not in its receipts"
    )
    differing = unequal.filter("excess <> 0").withColumn("fault", said)
    found = [checked.filter("fault is not null"), find_orphans(blocks), differing]
    ranked = [
        rows.select("number", "block_hash", "fault", sql.lit(rank).alias("rank")) for rank, rows in enumerate(found)
    ]
    return reduce(DataFrame.unionByName, ranked)


def find_orphans(blocks: DataFrame) -> DataFrame:
    """Applied blocks whose parent is not there, except the first of all."""
    applied = blocks.filter(sql.col("step") == Step.APPLY.value)
    parents = applied.select(sql.col("block_hash").alias("parent_hash"), (sql.col("number") + 1).alias("number"))
    first = applied.agg(sql.min("number").alias("first"))
    orphans = applied.join(parents, ["parent_hash", "number"], "left_anti").crossJoin(sql.broadcast(first))
    return orphans.filter("number > first").withColumn("fault", sql.lit("its parent is not in `blocks`"))


# --- in a worker


def check_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            yield check_stored(
                StoredBlock(
                    row["sequence"],
                    row["number"],
                    row["block_hash"],
                    row["chain_id"],
                    row["raws"],
                    {name: row[name] for name in FACTS},
                )
            )


def check_stored(stored: StoredBlock) -> pa.RecordBatch:
    try:
        return build_checked(stored, None, verify_stored(stored))
    except InvalidInput as error:
        return build_checked(stored, str(error), None)


def verify_stored(stored: StoredBlock) -> VerifiedBlock:
    header = stored.facts["header"]
    raw = RawBlock(header if isinstance(header, bytes) else b"", None, tuple(stored.raws or ()))
    block = verify_block(raw, get_profile(stored.chain_id), stored.block_hash)
    said = stored.facts | {"number": stored.number}
    facts = {name: get(block) for name, get in BLOCK_VALUES.items()}
    for name, value in (facts | {"number": block.header.number}).items():
        if said[name] != value:
            raise InvalidInput(
                Reason.DISAGREES,
                f"the column `{name}` says `{said[name]!r}`, the stored bytes say `{value!r}`",
                hint="fill the tables anew",
            )
    return block


def build_checked(stored: StoredBlock, fault: str | None, block: VerifiedBlock | None) -> pa.RecordBatch:
    """The row of the block and those of its logs."""
    count = 1 + count_logs(block)
    place = [pa.repeat(pa.scalar(getattr(stored, name), kind), count) for name, kind in KEY]
    faults = pa.array([fault, *[None] * count_logs(block)], TEXT)
    columns = [pa.concat_arrays([pa.nulls(1, kind), build_log_column([block], name)]) for name, kind in LOG]
    return pa.RecordBatch.from_arrays([*place, faults, *columns], schema=CHECKED)

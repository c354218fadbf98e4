"""Settled blocks into the tables, from where they end; the same command goes on where it was stopped."""

import json
from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import SparkSession

from proofcast.errors import InvalidRequest, Reason
from proofcast.pipeline.decoding import Abi
from proofcast.pipeline.io.sink import TableSink, Watch
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.schemas import TASKS, Table


def backfill(
    spark: SparkSession,
    tables: Tables,
    options: Mapping[str, str],
    abis: Sequence[Abi],
    scratch: str,
    watch: Watch = lambda end: None,
    kept: Collection[Table] = tuple(Table),
) -> Offset | None:
    """Read what `options` name, as far as it is settled now; returns how far the tables are whole then."""
    sink = TableSink(spark, tables, abis, watch, kept)
    beginning = verify_beginning(sink.end, options.get("first"), tables)
    chain = tables.find_chain_id(spark) if sink.end else None
    demanded = {} if chain is None else {"chain_id": str(chain)}
    bodies = "true" if Table.TRANSACTIONS in kept else "false"
    wanted = {"table": TASKS, "bodies": bodies, **options, **demanded, **beginning}
    steps = spark.readStream.format("evm").options(**wanted).load()
    query = (
        steps.writeStream.foreachBatch(sink.write)
        .option("checkpointLocation", scratch)
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return sink.end


def verify_beginning(end: Offset | None, first: str | None, tables: Tables) -> dict[str, str]:
    """Where to begin: behind what the tables have. They hold one stretch of one chain, without gaps."""
    if end is None:
        return {}
    if end.sequence > 0:
        raise InvalidRequest(
            Reason.NOT_ALLOWED,
            f"the tables `{tables.folder}` follow the chain since block `{end.number}` was its head",
            hint="`proofcast pipeline follow` goes on from there",
        )
    if first is not None and first.isdigit() and int(first) > end.number + 1:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"the tables `{tables.folder}` end at block `{end.number}`, so that beginning at `{first}` leaves a gap",
            hint=f"leave `--first` away to go on at `{end.number + 1}`, or name another folder",
        )
    return {"after": json.dumps(end.encode())}

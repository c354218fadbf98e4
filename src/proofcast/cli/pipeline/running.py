"""The pipeline's commands at work: a session, one job, what to print."""

import json

import click
from pyspark.sql import SparkSession

from proofcast.cli.match import load_subscriptions
from proofcast.cli.output import emit, format_record, note
from proofcast.cli.pipeline.following import follow
from proofcast.cli.pipeline.reading import get_read_options, load_abis, progress
from proofcast.cli.pipeline.request import BackfillRequest, DecodeRequest, MatchRequest, Request
from proofcast.cli.pipeline.session import open_session
from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.event import Finality
from proofcast.pipeline.io.abis import load_abi
from proofcast.pipeline.io.lock import held
from proofcast.pipeline.io.planning import get_last, open_checked
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs import audit as auditing
from proofcast.pipeline.jobs import backfill as backfilling
from proofcast.pipeline.jobs import compact as compacting
from proofcast.pipeline.jobs import decode as decoding
from proofcast.pipeline.jobs import match as matching
from proofcast.pipeline.jobs import status as telling
from proofcast.pipeline.options import parse_options
from proofcast.routing.predicate import format_predicate

__all__ = ["audit", "backfill", "compact", "decode", "follow", "match", "status"]


# --- backfill


def backfill(request: BackfillRequest) -> None:
    further = {"last": request.last, "checkpoint": request.checkpoint, "blocks_per_batch": request.blocks_per_batch}
    options = get_read_options(request) | {name: str(value) for name, value in further.items() if value is not None}
    abis = load_abis(request.abi_files)
    tables = Tables(request.folder)
    last = get_last(open_checked(parse_options(options))[0], parse_options(options))
    with held(request.folder), open_session(request) as (spark, scratch):
        before = tables.find_end(spark)
        start = before.number if before else (request.first or 0) - 1
        with progress(start, last) as watch:
            end = backfilling.backfill(spark, tables, options, abis, scratch, watch)
    if end is None:
        raise Unavailable(Reason.NOT_YET, "there is no finalized block to read yet", hint="try again later")
    said = f"blocks up to {end.number} (0x{end.hash.hex()}) are in {request.folder}"
    emit(request.as_json, {"number": end.number, "hash": end.hash, "added": end.number - start}, said)


# --- the others


def audit(request: Request) -> None:
    with open_session(request) as (spark, _):
        report = auditing.audit(spark, require(spark, request.folder))
    emit(request.as_json, report, f"{report.blocks} blocks and {report.logs} logs checked")
    bad = report.first_bad
    if bad:
        raise InvalidInput(
            Reason.DISAGREES,
            f"block `{bad.number}` (`0x{bad.hash.hex()}`) is bad: {bad.fault}",
            hint="do not use these tables; fill others from the source",
        )


def decode(request: DecodeRequest) -> None:
    abi = load_abi(request.abi_file, frozenset(request.addresses))
    with held(request.folder), open_session(request) as (spark, _):
        added = decoding.decode(spark, require(spark, request.folder), abi)
    emit(request.as_json, {"abi": abi.name, "added": added}, f"{added} events added under `{abi.name}`")


def match(request: MatchRequest) -> None:
    predicates = load_subscriptions(request.subscriptions)
    wanted = {str(name): format_predicate(predicate) for name, predicate in predicates.items()}
    with open_session(request) as (spark, _):
        found = matching.match(spark, require(spark, request.folder), wanted, Finality(request.finality))
        for row in found.toLocalIterator():
            shown = {"number": row["number"], "block_hash": f"0x{row['block_hash'].hex()}"}
            named = {"log_index": row["log_index"], "abi": row["abi"], "name": row["name"]}
            click.echo(json.dumps({**shown, **named, "subscriptions": row["subscriptions"]}))


def compact(request: Request) -> None:
    with held(request.folder), open_session(request) as (spark, _):
        counts = compacting.compact(spark, require(spark, request.folder), lambda table: note(f"{table} is compact"))
    emit(request.as_json, counts, format_record({name: f"{count} files" for name, count in counts.items()}))


def status(request: Request) -> None:
    with open_session(request) as (spark, _):
        found = telling.find_status(spark, require(spark, request.folder))
    assert found is not None
    lines = {
        "chain": str(found.chain_id),
        "blocks": f"{found.first} to {found.end.number} (0x{found.end.hash.hex()})",
        "step": str(found.end.sequence),
        "safe": str(found.safe),
        "finalized": str(found.finalized),
        "applied": f"{found.blocks} blocks with {found.logs} logs",
        "undone": f"{found.undone} blocks",
    }
    emit(request.as_json, found, format_record(lines))


def require(spark: SparkSession, folder: str) -> Tables:
    """The tables, which must be there."""
    tables = Tables(folder)
    if tables.find_end(spark) is None:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"there are no tables in `{folder}`",
            hint="check the folder; `proofcast pipeline backfill` makes them",
        )
    return tables

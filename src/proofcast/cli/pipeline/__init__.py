"""`proofcast pipeline ...`: blocks into tables, on Spark."""

import importlib
from collections.abc import Callable
from pathlib import Path

import click

from proofcast.cli.pipeline.request import BackfillRequest, DecodeRequest, FollowRequest, MatchRequest, Request
from proofcast.cli.values import ADDRESS
from proofcast.errors import Reason, Unavailable

MODULE = "proofcast.cli.pipeline.running"
FILE = click.Path(path_type=Path)
POLL_S = 0.1

SHARED_OPTIONS = [
    click.Option(["--tables", "folder"], required=True, help="Folder of the tables, or an address Hadoop knows."),
    click.Option(["--master"], default="local[*]", show_default=True, help="Spark's: `local[2]`, `spark://host:7077`."),
    click.Option(["--conf", "settings"], multiple=True, metavar="NAME=VALUE", help="Setting of Spark; repeatable."),
    click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."),
]
READ_OPTIONS = [
    click.Option(["--source"], required=True, help="Node, several (`2 of URL,URL,URL`), or folder of recorded blocks."),
    click.Option(["--first"], type=click.IntRange(min=0), help="Block at which new tables begin."),
    click.Option(["--chain-id"], type=click.INT, help="Refuse a source of any other chain."),
    click.Option(["--trust"], type=click.Choice(["linked", "agreed", "sealed"]), default="linked", help="Demanded."),
    click.Option(["--abi", "abi_files"], type=FILE, multiple=True, help="JSON ABI to decode events by; repeatable."),
]
ADDRESS_OPTION = click.Option(["--address", "addresses"], type=ADDRESS, multiple=True, help="These contracts only.")


def run(job: str, kind: type[Request], asked: dict[str, object]) -> None:
    """Load what runs on Spark, which is an optional part of the installation and slow to import, and run it."""
    try:
        start: Callable[[Request], None] = getattr(importlib.import_module(MODULE), job)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] == "proofcast":
            raise
        raise Unavailable(
            Reason.TOOL_MISSING,
            f"the pipeline needs the Python package `{error.name}`",
            hint="install it by `pip install 'proofcast[spark]'`; `make` does so in a checkout",
        ) from error
    start(kind(**asked))  # type: ignore[arg-type] # click has checked them


@click.group()
def pipeline() -> None:
    """Fill and check verified tables of blocks, receipts, logs and events, on Spark."""


@pipeline.command(params=[*SHARED_OPTIONS, *READ_OPTIONS])
@click.option("--last", type=click.IntRange(min=0), help="Block at which to end; else the last finalized one.")
@click.option("--checkpoint", metavar="NUMBER:HASH", help="A block that you trust: what is read must lead to it.")
@click.option(
    "--blocks-per-batch", type=click.IntRange(min=1), default=2048, show_default=True, help="Committed at once."
)
def backfill(**asked: object) -> None:
    """Fill tables with finalized blocks, every receipt checked; goes on where it stopped."""
    run("backfill", BackfillRequest, asked)


@pipeline.command(params=[*SHARED_OPTIONS, *READ_OPTIONS, ADDRESS_OPTION])
@click.option("--feed", type=FILE, help="Folder of journal and outbox.  [default: `feed` beside the tables]")
@click.option("--topic0", "topics", multiple=True, help="First topic of logs for the outbox; repeatable.")
@click.option("--poll", "poll_s", type=click.FloatRange(min=0.01), default=POLL_S, show_default=True, help="Seconds.")
@click.option("--tables-every", "tables_every_s", type=click.FloatRange(min=0), default=10, help="Seconds.")
@click.option("--until", type=click.IntRange(min=0), help="End when this block is in the outbox and in all tables.")
def follow(**asked: object) -> None:
    """Follow the chain's head: logs into the outbox at once, everything into the tables; reorgs as steps."""
    run("follow", FollowRequest, asked)


@pipeline.command(params=SHARED_OPTIONS)
def audit(**asked: object) -> None:
    """Recompute every hash and root from stored bytes and compare all rows; name the first bad block."""
    run("audit", Request, asked)


@pipeline.command(params=[*SHARED_OPTIONS, ADDRESS_OPTION])
@click.option("--abi", "abi_file", type=FILE, required=True, help="JSON ABI, as the compiler writes it.")
def decode(**asked: object) -> None:
    """Decode stored logs by an ABI into the table `events`; doing it again adds only what is new."""
    run("decode", DecodeRequest, asked)


@pipeline.command(params=SHARED_OPTIONS)
@click.option("--subscriptions", type=FILE, required=True, help='Lines like {"id": "a", "predicate": "Transfer T"}.')
@click.option("--finality", type=click.Choice(["latest", "safe", "finalized"]), default="latest", show_default=True)
def match(**asked: object) -> None:
    """Print a line of JSON for each event in the tables that a subscription wants, with the subscriptions.

    An event's name is a topic word of it, and its decoded arguments are attributes: `Transfer T/value R 1000 *`.
    """
    run("match", MatchRequest, asked)


@pipeline.command(params=SHARED_OPTIONS)
def compact(**asked: object) -> None:
    """Join small files of the tables into large ones, ordered by block and address."""
    run("compact", Request, asked)


@pipeline.command(params=SHARED_OPTIONS)
def status(**asked: object) -> None:
    """Say what the tables hold and how settled it is."""
    run("status", Request, asked)

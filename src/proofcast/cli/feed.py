"""`proofcast feed`: look after the feed between the pipeline and the broker."""

import time
from pathlib import Path

import click

from proofcast.chain.io.rpc import RpcClient
from proofcast.chain.io.source import open_source
from proofcast.cli.output import emit, note
from proofcast.cli.values import ADDRESS, refuse
from proofcast.ethereum.bloom import LogFilter
from proofcast.feed.io.prologue import Prologue
from proofcast.feed.io.retention import Limits, trim_feed
from proofcast.onchain.io.artefacts import get_contracts, get_exchanges
from proofcast.onchain.io.reading import find_creation_block


@click.group()
def feed() -> None:
    """Look after the feed between the pipeline and the broker."""


@feed.command()
@click.option(
    "--feed", "folder", type=click.Path(path_type=Path), required=True, help="Folder that `pipeline follow` writes."
)
@click.option("--source", required=True, help="Node, or several (`2 of URL,URL,URL`).")
@click.option("--topics", type=ADDRESS, help="`Topics`, where it is not at its usual address.")
@click.option(
    "--first", type=click.IntRange(min=1), help="Block to begin with; else the one in which `Topics` was deployed."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def backfill(folder: Path, source: str, topics: bytes | None, first: int | None, as_json: bool) -> None:
    """Put what `Topics` and `Exchanges` did before the feed began into it, verified, so that a broker serves it too.

    It may run beside `pipeline follow` and `broker serve`, and goes on where it was when it is started again.
    """
    address = get_contracts(topics).topics
    prologue = Prologue(open_source(source), folder, LogFilter(frozenset({address, get_exchanges(address)})))
    first = first or find_deployment(source, address)
    note(f"from block {prologue.oldest.number} back to block {first}")
    while prologue.fill_stretch(first):
        note(f"back to block {prologue.oldest.number + 1}")
    oldest = prologue.oldest.number + 1
    emit(as_json, {"oldest": oldest}, f"everything from block {oldest} on is in {folder}")


def find_deployment(source: str, address: bytes) -> int:
    """By bisection of where the contract has code."""
    if not source.startswith(("http://", "https://")) or "," in source:
        raise refuse("the block of the deployment is found by asking one node", "name one, or give `--first`")
    with RpcClient(source) as rpc:
        return max(1, find_creation_block(rpc, address))


@feed.command()
@click.option(
    "--feed", "folder", type=click.Path(path_type=Path), required=True, help="Folder that `pipeline follow` writes."
)
@click.option("--days", type=click.FloatRange(min=0), help="Keep what is younger; forget what is older.")
@click.option("--megabytes", type=click.IntRange(min=1), help="Forget the oldest until no more is in use.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def trim(folder: Path, days: float | None, megabytes: int | None, as_json: bool) -> None:
    """Forget the oldest events of a feed, and what their evidence is made of; run it as often as you like.

    Only what is final, and what the pipeline has read, is forgotten. The space is used again by what comes.
    """
    if days is None and megabytes is None:
        raise refuse("nothing says what to forget", "give `--days`, `--megabytes`, or both")
    count = trim_feed(folder, Limits(days, megabytes), time.time())
    emit(as_json, {"forgotten": count}, f"{count} blocks forgotten")

"""`proofcast pipeline follow`: the journal's writer, and the two queries that read it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from proofcast.chain.source import BlockSource
from proofcast.cli.output import emit, note
from proofcast.cli.pipeline.reading import get_read_options, load_abis, progress
from proofcast.cli.pipeline.request import FollowRequest
from proofcast.cli.pipeline.session import open_session
from proofcast.errors import Unavailable
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.history import History
from proofcast.feed.io.sqlite import Journal
from proofcast.pipeline.io.lock import held
from proofcast.pipeline.io.outbox import OutboxSink
from proofcast.pipeline.io.planning import get_last, open_checked
from proofcast.pipeline.io.sink import TableSink
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.backfill import backfill
from proofcast.pipeline.jobs.follow import FollowQueries, verify_joint
from proofcast.pipeline.jobs.follow import follow as start_queries
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.options import parse_options

MEMORY = "1g"
"""Batches near the head are small."""


@dataclass(slots=True)
class Reached:
    """How far both sinks are, in steps."""

    outbox: int = 0
    tables: int = 0
    goal: int | None = field(default=None)
    """The step at which to end, once it is known."""

    def note_outbox(self, end: Offset) -> None:
        self.outbox = end.sequence

    def note_tables(self, end: Offset) -> None:
        self.tables = end.sequence
        note(f"step {end.sequence} (block {end.number}) is in all tables")

    def is_goal(self) -> bool:
        return self.goal is not None and min(self.outbox, self.tables) >= self.goal


def follow(request: FollowRequest) -> None:
    feed = request.feed or Path(request.folder) / "feed"
    source, profile = open_checked(parse_options(get_read_options(request)))
    with held(request.folder), open_session(request, MEMORY) as (spark, scratch):
        tables, reached = Tables(request.folder), Reached()
        if not is_journalled(feed):
            fill(spark, tables, request, source, scratch)
        end = tables.find_end(spark)
        follower = FeedFollower(source, feed, end.block if end else None, profile)
        verify_joint(end, History(feed).get_oldest().block, request.folder)
        queries = start(spark, request, feed, profile.chain_id, reached, scratch)
        note(f"following chain {profile.chain_id} from block {follower.chain.head.number}; Ctrl-C ends it")
        try:
            is_enough = build_ending(Journal(feed), reached, request.until, queries.are_running)
            follower.follow(is_enough, lambda: time.sleep(request.poll_s))
        finally:
            queries.stop()
        emit(request.as_json, reached, f"step {reached.tables} is in all tables, step {reached.outbox} in the outbox")


def start(
    spark: SparkSession, request: FollowRequest, feed: Path, chain_id: int, reached: Reached, scratch: str
) -> FollowQueries:
    """Both queries, each from where its sink ends."""
    outbox = OutboxSink(feed, chain_id, reached.note_outbox)
    tables = TableSink(spark, Tables(request.folder), load_abis(request.abi_files), reached.note_tables)
    reached.outbox, reached.tables = outbox.end.sequence, tables.end.sequence if tables.end else 0
    addresses = ",".join(address.hex() for address in request.addresses)
    wanted = {"addresses": addresses, "topic0": ",".join(request.topics)}
    return start_queries(spark, str(feed), outbox, tables, wanted, scratch, request.tables_every_s)


def is_journalled(feed: Path) -> bool:
    try:
        Journal(feed).get_chain_id()
    except Unavailable:
        return False
    return True


def fill(spark: SparkSession, tables: Tables, request: FollowRequest, source: BlockSource, scratch: str) -> None:
    """What is final already does not go through the journal; without a first block there is nothing to fill."""
    before = tables.find_end(spark)
    if before is None and request.first is None:
        return
    options = get_read_options(request)
    start = before.number if before else (request.first or 0) - 1
    with progress(start, get_last(source, parse_options(options))) as watch:
        backfill(spark, tables, options, load_abis(request.abi_files), f"{scratch}/backfill", watch)


def build_ending(
    journal: Journal, reached: Reached, until: int | None, are_running: Callable[[], bool]
) -> Callable[[], bool]:
    """When to end: a query has failed, or the wanted block is everywhere."""

    def is_enough() -> bool:
        if until is not None and reached.goal is None:
            state = journal.read_state()
            reached.goal = state.sequence if state.head.number >= until else None
        return reached.is_goal() or not are_running()

    return is_enough

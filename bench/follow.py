"""How long a block that a node has takes until its logs are committed in the outbox.

A simulated chain is served over HTTP, by a process of its own; the follower polls it, the journal is on disk, Spark
reads the journal, and the tables are written by their own query meanwhile.

`PROOFCAST_FOLLOW_BLOCKS=40` measures as few blocks, to see that it runs.
"""

import os
import sys
import tempfile
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from matplotlib.figure import Figure
from numpy import percentile

from bench.report import RESULTS, Row, write_report
from proofcast.chain.io.source import open_source
from proofcast.chain.segment import BlockId
from proofcast.event import Step
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.sqlite import Journal
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.outbox import OutboxSink
from proofcast.pipeline.io.session import build_session
from proofcast.pipeline.io.sink import TableSink
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.follow import follow
from proofcast.pipeline.offsets import Offset
from proofcast.testing.chain import ChainSimulator, SimulatedNode

SEED = 2026
MEASURED = int(os.environ.get("PROOFCAST_FOLLOW_BLOCKS", "400"))
WARM_UP = min(MEASURED, 180)
"""Blocks. The JVM's compilers need about a minute."""
BLOCK_EVERY_S = 0.5
POLL_S = 0.02
P50_MS_MAX, P99_MS_MAX = 150, 300


@dataclass(slots=True)
class Clock:
    """When each block was there, and when the outbox had it; one clock for all processes of a machine."""

    available: dict[bytes, float] = field(default_factory=dict)
    committed: dict[int, float] = field(default_factory=dict)
    """By the step's sequence, of the last step of each commit."""

    def note_commit(self, end: Offset) -> None:
        self.committed[end.sequence] = time.monotonic()

    def compute_delays_ms(self, journal: Journal) -> list[float]:
        """Of every block that was measured, in their order."""
        ends = sorted(self.committed)
        steps = [entry.step for entry in journal.read(0, 8 * len(self.available))]
        applied = {step.hash: step.sequence for step in steps if step.step is Step.APPLY}
        commits = [self.committed[ends[bisect_left(ends, applied[block])]] for block in self.available]
        return [1e3 * (end - begin) for begin, end in zip(self.available.values(), commits, strict=True)][WARM_UP:]


def serve(parent: Connection) -> None:
    """The node: says its address, its chain and its first block, mines when told to, and says when each block came."""
    with SimulatedNode(ChainSimulator(SEED)) as node:
        parent.send((node.url, node.chain.chain_id, node.chain.head.hash))
        parent.recv()
        available = {}
        for _ in range(WARM_UP + MEASURED):
            (block,) = node.chain.mine()
            available[block.hash] = time.monotonic()
            time.sleep(BLOCK_EVERY_S)
        parent.send(available)
        parent.recv()


def run(folder: Path, node: Connection, clock: Clock) -> Journal:
    """Follow the node while it mines; ends when all that was mined is in the outbox."""
    feed = folder / "feed"
    url, chain_id, first_hash = node.recv()
    follower = FeedFollower(open_source(url), feed, BlockId(0, first_hash))
    spark = build_session("local[2]", {"spark.driver.memory": "1g"})
    outbox = OutboxSink(feed, chain_id, clock.note_commit)
    tables = TableSink(spark, Tables(str(folder / "tables")), [get_own_abi()], lambda end: None)
    queries = follow(spark, str(feed), outbox, tables, {}, str(folder / "scratch"))
    journal = Journal(feed)
    node.send("mine")

    def is_enough() -> bool:
        if not clock.available and node.poll():
            clock.available = node.recv()
        done = clock.available and outbox.end.sequence >= journal.read_state().sequence
        return bool(done) or not queries.are_running()

    try:
        follower.follow(is_enough, lambda: time.sleep(POLL_S))
    finally:
        queries.stop()
        spark.stop()
        node.send("end")
    return journal


def draw(delays_ms: list[float]) -> None:
    figure = Figure(figsize=(7, 2.8))
    axes = figure.subplots()
    axes.plot(delays_ms, ".", markersize=3)
    for bound in (P50_MS_MAX, P99_MS_MAX):
        axes.axhline(bound, ls="--", lw=0.8, color="C7")
    axes.set(xlabel="block", ylabel="ms until committed", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(RESULTS / "follow.svg")


def main() -> int:
    clock, context = Clock(), get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=serve, args=(theirs,), daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="proofcast-") as folder:
        delays_ms = clock.compute_delays_ms(run(Path(folder), ours, clock))
    draw(delays_ms)
    p50, p99 = (round(float(percentile(delays_ms, at)), 1) for at in (50, 99))
    anchor = "block available at the node -> committed in the outbox"
    rows = [
        Row("delay, p50", p50, "ms", P50_MS_MAX, "lower", anchor),
        Row("delay, p99", p99, "ms", P99_MS_MAX, "lower", anchor),
        Row("delay, worst", round(max(delays_ms), 1), "ms", None, "lower", anchor),
        Row("blocks measured", len(delays_ms), "blocks", None, "higher", f"one every {BLOCK_EVERY_S} s"),
    ]
    return write_report("follow", rows)


if __name__ == "__main__":
    sys.exit(main())

"""`kill -9` of backfill and follow, fifty times, at random lines of what they say: is anything lost, or there twice?

`PROOFCAST_KILLS=4` kills as few, to see that it runs.
"""

import os
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from bench.report import RESULTS, Row, write_report
from proofcast.chain.io.recorded import write_blocks
from proofcast.event import Step
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.pipeline.io.session import build_session
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.schemas import Table
from proofcast.testing.chain import ChainSimulator, SimulatedNode
from proofcast.testing.pipeline import QUICK_SETTINGS, run_killable

SEED = 31
KILLS = 50
KILLS_EACH = int(os.environ.get("PROOFCAST_KILLS", KILLS)) // 2
LINES_MAX = 20
"""A run is killed at a line up to this one: two batches of tables."""

Rows = list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Difference:
    lost: int
    twice: int
    """Or never there."""


def compare(expected: Rows, found: Rows) -> Difference:
    return Difference(len(set(expected) - set(found)), len(found) - len(set(found) & set(expected)))


def kill_backfill(folder: Path, lines: list[int]) -> Rows:
    """Kill it again and again until enough; returns the rows of `logs` that must be there."""
    dice = random.Random(SEED)
    chain = ChainSimulator(SEED)
    chain.mine(KILLS_EACH * 5)
    source = folder / "recorded"
    write_blocks(source, chain.chain_id, [block.raw for block in chain.canonical[1:]])
    arguments = ["backfill", str(source), str(folder)]
    lines += [run_killable(arguments, dice.randint(1, LINES_MAX)) for _ in range(KILLS_EACH)]
    run_killable(arguments, None)
    return [(block.header.number, at, log.data) for block in chain.canonical[1:] for at, log in enumerate(block.logs)]


def kill_follow(folder: Path, lines: list[int]) -> tuple[Rows, Rows]:
    """The rows that must be in the outbox, and in `logs`."""
    dice = random.Random(SEED + 1)
    with SimulatedNode(ChainSimulator(SEED + 1)) as node:
        node.chain.mine(3)
        arguments = ["follow", node.url, str(folder)]
        for _ in range(KILLS_EACH):
            lines.append(run_killable([*arguments, str(10**9)], dice.randint(1, 6)))
            node.chain.mine(1)
            node.chain.reorg(dice.randint(1, 3))
        run_killable([*arguments, str(node.chain.head.header.number)], None)
        steps = [entry.step for entry in Journal(folder / "feed").read(0, 10_000)]
        rows: Rows = [
            (step.sequence, at, step.step.value, log.data)
            for step in steps
            if step.step is not Step.FINAL
            for at, log in enumerate(node.chain.blocks[step.hash].logs)
        ]
    return rows, [(row[0], row[1], row[3]) for row in rows if row[2] == Step.APPLY.value]


def read_outbox(folder: Path) -> Rows:
    outbox, rows, after = Outbox(folder / "feed"), list[tuple[object, ...]](), (0, -1)
    while found := outbox.read(31_337, after):
        rows += [(row.sequence, row.position.log_index, row.step.value, row.log.data) for row in found]
        after = (found[-1].sequence, found[-1].position.log_index)
    return rows


def read_logs(spark: SparkSession, folder: Path, first: str) -> Rows:
    logs = Tables(str(folder / "tables")).read(spark, Table.LOGS).select(first, "log_index", "data").collect()
    return [(row[0], row[1], bytes(row[2])) for row in logs]


def draw(lines: list[int]) -> None:
    figure = Figure(figsize=(7, 2.4))
    axes = figure.subplots()
    axes.hist(lines, bins=range(1, LINES_MAX + 2))
    axes.set(xlabel="line of its own report at which a run was killed", ylabel="kills")
    figure.tight_layout()
    figure.savefig(RESULTS / "kill.svg")


def main() -> int:
    print(f"seed {SEED}", file=sys.stderr)
    lines: list[int] = []
    with tempfile.TemporaryDirectory(prefix="proofcast-") as name:
        first, second = Path(name) / "backfill", Path(name) / "follow"
        with ThreadPoolExecutor() as pool:  # a process that starts keeps one core busy, so two of them take no longer
            backfills, follows = pool.submit(kill_backfill, first, lines), pool.submit(kill_follow, second, lines)
        filled, (delivered, followed) = backfills.result(), follows.result()
        spark = build_session("local[2]", QUICK_SETTINGS)
        differences = {
            "backfill, logs": compare(filled, read_logs(spark, first, "number")),
            "follow, logs": compare(followed, read_logs(spark, second, "sequence")),
            "follow, outbox": compare(delivered, read_outbox(second)),
        }
        spark.stop()
    draw(lines)
    rows = [Row("kills", len(lines), "", KILLS, "higher", "kill -9 of the whole process tree")]
    for where, difference in differences.items():
        rows.append(Row(f"{where}: lost", difference.lost, "rows", 0, "lower", "an uninterrupted run"))
        rows.append(Row(f"{where}: twice or false", difference.twice, "rows", 0, "lower", "an uninterrupted run"))
    return write_report("kill", rows)


if __name__ == "__main__":
    sys.exit(main())

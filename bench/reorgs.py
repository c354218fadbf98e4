"""Reorgs while delivering: a thousand random histories in this process, ten through a node, a follower and a broker.

python -m bench.reorgs [HISTORIES [THROUGH_PROCESSES]]
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.report import Row, write_report
from proofcast.testing.broker.histories import live_through
from proofcast.testing.client import live_through_processes

HISTORIES, THROUGH_PROCESSES = 1_000, 10


def count_true(run: Callable[[Path, int], None], count: int) -> int:
    """How many seeds end with every subscriber's view being the canonical chain; the others are told."""
    reached = 0
    for seed in range(count):
        with tempfile.TemporaryDirectory(prefix="proofcast-") as folder:
            try:
                run(Path(folder), seed)
                reached += 1
            except AssertionError as error:
                print(f"seed {seed}: {error}", file=sys.stderr)
    return reached


def live(folder: Path, seed: int) -> None:
    asyncio.run(live_through(folder, seed))


def main(histories: int = HISTORIES, through: int = THROUGH_PROCESSES) -> int:
    anchor = "every subscriber's final view is the canonical chain, at each finality"
    rows = [
        Row("random histories, in one process", count_true(live, histories), "histories", histories, "higher", anchor),
        Row(
            "random histories, through processes",
            count_true(live_through_processes, through),
            "histories",
            through,
            "higher",
            anchor,
        ),
    ]
    return write_report("reorgs", rows)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

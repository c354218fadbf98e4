"""A thousand seeds of crashes, partitions and take-overs; after healing nobody may miss anything."""

import os
import sys
import time

from matplotlib.figure import Figure

from bench.report import RESULTS, Row, write_report
from proofcast.testing.overlay.ordeal import undergo

SEEDS = int(1_000 * float(os.environ.get("PROOFCAST_BENCH_SCALE", "1")))
SHOWN_EVERY = 100


def main() -> int:
    began = time.process_time()
    missing, twice, expected, sizes = 0, 0, 0, []
    for seed in range(SEEDS):
        network, verdict = undergo(seed)
        expected += verdict.expected
        missing += len(verdict.missing)
        twice += verdict.twice
        sizes.append(sum(node.peer.seat.counts["repaired"] for node in network.nodes))
        if verdict.missing or verdict.twice:
            print(f"seed {seed}: {verdict}", file=sys.stderr)
        if seed % SHOWN_EVERY == SHOWN_EVERY - 1:
            print(f"{seed + 1} of {SEEDS} seeds", file=sys.stderr)
    draw(sizes)
    return write_report(
        "overlay_faults",
        [
            Row("seeds", SEEDS, "", SEEDS, "higher", "reference has no such test"),
            Row(f"missing after healing of {expected:,}", missing, "events", 0, "lower", "reference has no such test"),
            Row("delivered twice", twice, "events", 0, "lower", "reference 5-22 %"),
            Row("CPU", round(time.process_time() - began, 1), "s", None, "lower", ""),
        ],
    )


def draw(repaired: list[int]) -> None:
    figure = Figure(figsize=(6, 3))
    axes = figure.subplots()
    axes.hist(repaired, bins=30)
    axes.set(xlabel="events fetched from a log in one ordeal", ylabel="seeds")
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "overlay_faults.svg")


if __name__ == "__main__":
    sys.exit(main())

"""A million random calls against the invariants of `Topics`: every kind of subscriber, prices, pages, forced ether.

Two processes with seeds of their own share the work in small portions, so that progress shows and a portion that fails
names its seed.
"""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from matplotlib.figure import Figure

from bench.gasbed import CONTRACTS
from bench.report import RESULTS, Row, write_report

CALLS = 1_000_000
RUNS, DEPTH = 50, 500
"""Runs of one portion and calls of one run; lists grow long enough for pages and seals within a run."""
CHECK_INTERVAL = 5
"""Calls between two looks at everything, with one at the end of a run: what goes wrong stays wrong, and a look takes
longer than a call. `make test` looks after each."""
PROCESSES = 2
TIME_S_MAX = 1_140.0
"""A target ends within 20 minutes; portions begun later would not."""
SUMMARY = re.compile(r"calls: (\d+), reverts: (\d+)")


@dataclass(frozen=True, slots=True)
class Portion:
    seed: int
    calls: int
    passed: bool
    at_s: float


def run_portion(seed: int, began: float) -> Portion:
    environment = os.environ | {
        "FOUNDRY_INVARIANT_RUNS": str(RUNS),
        "FOUNDRY_INVARIANT_DEPTH": str(DEPTH),
        "FOUNDRY_INVARIANT_CHECK_INTERVAL": str(CHECK_INTERVAL),
        "FOUNDRY_FUZZ_SEED": hex(seed),
    }
    command = ["forge", "test", "--match-contract", "InvariantsTest"]
    done = subprocess.run(command, cwd=CONTRACTS, env=environment, capture_output=True, text=True, check=False)
    found = SUMMARY.search(done.stdout)
    if done.returncode != 0:
        print(f"seed {seed}:\n{done.stdout}{done.stderr}", file=sys.stderr)
    return Portion(seed, int(found[1]) if found else 0, done.returncode == 0, time.monotonic() - began)


def run_all() -> list[Portion]:
    subprocess.run(["forge", "build"], cwd=CONTRACTS, check=True, stdout=subprocess.DEVNULL)
    began = time.monotonic()
    portions: list[Portion] = []
    seed = 1
    with ThreadPoolExecutor(PROCESSES) as pool:
        while sum(portion.calls for portion in portions) < CALLS and time.monotonic() - began < TIME_S_MAX:
            portions += pool.map(lambda one: run_portion(one, began), range(seed, seed + PROCESSES))
            seed += PROCESSES
            calls = sum(portion.calls for portion in portions)
            print(f"{calls:,} calls after {time.monotonic() - began:.0f} s", file=sys.stderr)
            if not all(portion.passed for portion in portions):
                break
    return portions


def draw(portions: list[Portion]) -> None:
    figure = Figure(figsize=(6, 3.4))
    axes = figure.subplots()
    calls = [sum(portion.calls for portion in portions[: i + 1]) for i in range(len(portions))]
    axes.plot([portion.at_s for portion in portions], calls, ".-")
    axes.set(xlabel="seconds", ylabel="calls without a violation")
    figure.tight_layout()
    figure.savefig(RESULTS / "invariants.svg")


if __name__ == "__main__":
    done = run_all()
    draw(done)
    calls = sum(portion.calls for portion in done if portion.passed)
    failed = sum(not portion.passed for portion in done)
    sys.exit(
        write_report(
            "invariants",
            [
                Row("random calls", calls, "calls", CALLS, "higher", "the issue's million"),
                Row("portions with a violation", failed, "portions", 0, "lower", "none"),
            ],
        )
    )

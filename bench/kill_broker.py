"""Kill the broker without warning, again and again, while it delivers; and a thousand random histories without sockets.

A chain with reorgs is journalled while a webhook and a fetching subscriber are served by a broker in a process of its
own. At a random moment it gets SIGKILL and another one takes its place on the same store. In the end each subscriber
holds exactly what the chain holds; nothing that was acknowledged came again, and nothing came again unmarked.

`PROOFCAST_KILLS=10 python -m bench.kill_broker` is the same on a small scale.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt

from bench.report import RESULTS, Row, write_report
from proofcast.cli import doctor
from proofcast.errors import Reason, Unavailable
from proofcast.testing.broker.acknowledging import run_history
from proofcast.testing.broker.killing import Trial
from proofcast.testing.broker.postgres import run_postgres

KILLS = int(os.environ.get("PROOFCAST_KILLS", "160"))
"""Of brokers, half of them on each store."""
HISTORIES = KILLS * 1_000 // 160
KILLS_PER_TRIAL = 10
"""On one feed and one store; then a new one, so that trials stay short."""


def main() -> int:
    program = doctor.find_program("postgres")
    if program is None:
        raise Unavailable(Reason.TOOL_MISSING, "there is no `postgres` here", hint="`make system-deps` installs it")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(run_postgres(program))
        histories = count_faults(partial(run_history, folder / f"h{seed}", seed) for seed in range(HISTORIES))
        seeds = range(KILLS // 2 // KILLS_PER_TRIAL)
        faults = {
            "SQLite": count_faults(partial(run_trial, folder / f"s{seed}", "", seed) for seed in seeds),
            "PostgreSQL": count_faults(
                partial(run_trial, folder / f"p{seed}", server.create_database(), seed) for seed in seeds
            ),
        }
    rows = [
        Row("random histories in the machine", HISTORIES, "histories", 1_000, "higher", "issue 5"),
        Row("... that do not end with the chain's own view", histories, "histories", 0, "lower", "at least once"),
        Row("kills of the broker while it delivers, both stores", KILLS, "kills", 160, "higher", "issue 5"),
        *(
            Row(f"... lost, repeated unmarked or after it was acknowledged, {name}", count, "trials", 0, "lower", "")
            for name, count in faults.items()
        ),
    ]
    plot(rows)
    return write_report("kill_broker", rows)


def run_trial(folder: Path, store: str, seed: int) -> None:
    """One broker on SQLite, two that share a PostgreSQL."""
    began = time.monotonic()
    folder.mkdir()
    trial = Trial(folder, store, seed, brokers=2) if store else Trial(folder, str(folder / "broker.sqlite"), seed)
    asyncio.run(trial.run(KILLS_PER_TRIAL))
    print(f"{folder.name}: {KILLS_PER_TRIAL} kills in {time.monotonic() - began:.0f} s", file=sys.stderr)


def count_faults(trials: Iterable[Callable[[], None]]) -> int:
    """How many of them do not hold what they promise; each is told."""
    faults = 0
    for trial in trials:
        try:
            trial()
        except AssertionError as fault:
            faults += 1
            print(f"fault: {fault}", file=sys.stderr)
    return faults


def plot(rows: list[Row]) -> None:
    figure, axes = plt.subplots(figsize=(8, 2.5))
    axes.barh([row.metric for row in rows], [row.value for row in rows], color="#4477aa")
    for place, row in enumerate(rows):
        axes.text(row.value, place, f" {row.value:,.0f}", va="center")
    axes.invert_yaxis()
    axes.set_xscale("symlog")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(RESULTS / "kill_broker.svg")


if __name__ == "__main__":
    sys.exit(main())

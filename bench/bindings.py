"""How fast routing keys with wildcards find their bindings among a million, and how few of them they look at."""

import os
import random
import sys
from time import process_time

from matplotlib.figure import Figure

from bench.report import RESULTS, Row, write_report
from proofcast.routing.bindings import BindingIndex
from proofcast.routing.key import ALPHABET, parse_routing_key

BINDINGS = int(1_000_000 * float(os.environ.get("PROOFCAST_BENCH_SCALE", "1")))
SEED = 20261116
SUBJECTS = ("colour", "price", "weather", "flight", "energy", "parcel", "sensor", "doctor")
KEYS = ("colour-a", "colour-ab*", "*-abc", "weather-*xy*", "*Q7z*", "price-##-###", "*a", "sensor-#9#*", "*-a*bcd")
"""Direct, and with wildcards at each place."""


def make_keys(count: int) -> list[str]:
    dice = random.Random(SEED)
    return [f"{dice.choice(SUBJECTS)}-{''.join(dice.choices(ALPHABET, k=dice.randint(1, 12)))}" for _ in range(count)]


def measure() -> list[Row]:
    keys, index = make_keys(BINDINGS), BindingIndex()
    began = process_time()
    for queue, key in enumerate(keys):
        index.add(key, queue)
    rows = [Row("additions", round(BINDINGS / (process_time() - began)), "bindings/s", None, "higher", "")]
    spent = []
    for key in KEYS:
        began = process_time()
        found = index.find(key)
        spent.append((process_time() - began) * 1000)
        wanted = parse_routing_key(key)
        looked = len(list(index.find_candidates(wanted)))
        assert found == {queue for queue, each in enumerate(keys) if wanted.matches(each)}, (
            f"`{key}` differs from a scan"
        )
        rows.append(Row(f"`{key}`: {len(found):,} queues found", round(spent[-1], 3), "ms", None, "lower", ""))
        rows.append(
            Row(f"`{key}`: bindings looked at", looked, "bindings", BINDINGS / 4, "lower", f"a scan: {BINDINGS:,}")
        )
    draw(spent)
    return rows


def draw(spent: list[float]) -> None:
    figure = Figure(figsize=(7, 3.2))
    axes = figure.subplots()
    axes.barh(KEYS, spent)
    axes.set(xscale="log", xlabel=f"ms of CPU time, {BINDINGS:,} bindings")
    figure.tight_layout()
    figure.savefig(RESULTS / "bindings.svg")


if __name__ == "__main__":
    sys.exit(write_report("bindings", measure()))

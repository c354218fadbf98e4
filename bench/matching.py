"""How fast the matching index finds the subscriptions of an event, beside brute force, counting and SQLite.

1,000,000 subscriptions of 3-5 ranges over 20 attributes, uniform. The width of the ranges is chosen so that every
subscription matches the stated share of events, however many ranges it has. With a topic word every subscription also
demands one of 100 words and every event carries one, on top of ranges that let through the stated share. Events come
in batches of thousands, as columns. Time is CPU time of one thread, the median of several batches.
"""

import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from matplotlib.figure import Figure

from bench.matching_rivals import RIVALS, Rival
from bench.matching_streams import STREAMS, open_stream
from bench.report import RESULTS, Row, describe_machine, write_report
from proofcast.cli.doctor import find_data
from proofcast.routing.boxes import Boxes, Rows
from proofcast.routing.kernel import IS_NATIVE, NativeEngine

SUBSCRIPTIONS = 1_000_000
ATTRIBUTES = 20
TOPICS = 100
BATCHES = 7
UPDATES = 1_000_000
UPDATES_AT_ONCE = 1_000
UPDATE_RATE = 100_000
"""Additions and removals per second of CPU time, while matching."""
SEED = 20261116
STREAM_SUBSCRIPTIONS = 100_000
RIVAL_EVENTS = 5
SIZES = (10_000, 100_000, 1_000_000)
NO_DOUBLES = np.zeros(0)
HAS_AVX2 = "avx2" in str(describe_machine()["flags"])


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    share: float
    rate_min: float | None
    """Events per second that must be reached."""
    batch: int = 4_000
    topics: int = 0
    skew: float = 1.0
    """Values and ranges are drawn as this power of a uniform number: above 1 they crowd at 0."""
    is_correlated: bool = False
    """All values of an event, and all ranges of a subscription, lie near one middle."""


TABLE = (
    Workload("0.01 % match", 0.0001, 15_000),
    Workload("0.1 % match", 0.001, 8_000),
    Workload("1 % match", 0.01, 2_500, batch=1_000),
    Workload("0.1 % match, with a topic word", 0.001, 90_000, batch=10_000, topics=TOPICS),
)
HARDER = (
    Workload("0.1 % of all match, with a topic word", 0.1, None, batch=10_000, topics=TOPICS),
    Workload("0.1 % match, skewed", 0.001, None, skew=4.0),
    Workload("narrow ranges, correlated", 0.00001, None, is_correlated=True),
)


class Generator:
    """Subscriptions and events of one workload; the same seed gives the same ones."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.dice = np.random.default_rng(SEED)

    def make_boxes(self, first: int, count: int) -> Boxes:
        sizes = self.dice.integers(3, 6, count)
        widths = np.repeat(self.workload.share ** (1 / sizes), sizes)
        lows = self._draw_middles(sizes) * (1 - widths)
        stretch = self.workload.skew
        chosen = np.argsort(self.dice.random((count, ATTRIBUTES)), axis=1)[:, :5][np.arange(5) < sizes[:, None]]
        return Boxes(
            np.arange(first, first + count, dtype=np.uint32),
            *self._make_tokens(count),
            make_starts(sizes),
            chosen.astype(np.uint32),
            lows**stretch,
            (lows + widths) ** stretch,
        )

    def make_rows(self, count: int) -> Rows:
        values = self._draw_middles(np.full(count, ATTRIBUTES)) ** self.workload.skew
        attributes = np.arange(ATTRIBUTES, dtype=np.uint32)
        return Rows(attributes, values, NO_DOUBLES, *self._make_tokens(count))

    def _draw_middles(self, sizes: np.ndarray) -> np.ndarray:
        if not self.workload.is_correlated:
            return self.dice.random(sizes.sum())
        near = np.repeat(self.dice.random(len(sizes)), sizes) + self.dice.normal(0, 0.02, sizes.sum())
        return np.clip(near, 0, 1)

    def _make_tokens(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        each = 1 if self.workload.topics else 0
        tokens = self.dice.integers(0, max(self.workload.topics, 1), count * each, dtype=np.uint32)
        return np.arange(count + 1, dtype=np.uint32) * np.uint32(each), tokens


def make_starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)


def measure_cpu(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return process_time() - began


def measure_resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Bed:
    """An index of a million subscriptions, of which the oldest are replaced."""

    def __init__(self, workload: Workload, count: int = SUBSCRIPTIONS) -> None:
        self.generator = Generator(workload)
        boxes = self.generator.make_boxes(0, count)
        before = measure_resident_bytes()
        self.engine = NativeEngine()
        self.build_s = measure_cpu(lambda: self.engine.add(boxes))
        self.resident_bytes = measure_resident_bytes() - before
        self.oldest, self.next = 0, count

    def update(self, count: int) -> float:
        """CPU seconds of so many updates, half of them removals and half additions."""
        gone = np.arange(self.oldest, self.oldest + count // 2, dtype=np.uint32)
        fresh = self.generator.make_boxes(self.next, count // 2)
        self.oldest, self.next = self.oldest + count // 2, self.next + count // 2
        return measure_cpu(lambda: self.engine.remove(gone)) + measure_cpu(lambda: self.engine.add(fresh))

    def measure_rate(self) -> float:
        """Events per second."""
        return self.generator.workload.batch / median(self.match() for _ in range(BATCHES))

    def match(self) -> float:
        rows = self.generator.make_rows(self.generator.workload.batch)
        return measure_cpu(lambda: self.engine.match(rows))

    def measure_share_while_updating(self) -> float:
        """What is left of the rate of a thread that does `UPDATE_RATE` updates in each second beside.

        Batches without and with updates take turns, because a machine's speed drifts.
        """
        alone = beside = 0.0
        updates = 0
        for turn in range(1, BATCHES + 1):
            self.match()  # brings back into the cache what updates pushed out
            alone += self.match()
            while updates < UPDATE_RATE * (beside + alone / turn):  # those of the batch that follows, too
                beside += self.update(UPDATES_AT_ONCE)
                updates += UPDATES_AT_ONCE
            beside += self.match()
        return alone / beside


def measure_table(workload: Workload) -> list[Row]:
    print(f"measuring: {workload.name}", file=sys.stderr)
    bed = Bed(workload)
    rows = [bound_rate(workload.name, bed.measure_rate(), workload)]
    rows.append(memory(f"{workload.name}: memory", max(bed.resident_bytes, bed.engine.get_memory_bytes())))
    spent = sum(bed.update(UPDATES_AT_ONCE) for _ in range(UPDATES // UPDATES_AT_ONCE))
    rows.append(Row(f"{workload.name}: updates", round(UPDATES / spent), "updates/s", UPDATE_RATE, "higher", ""))
    rows.append(bound_rate(f"{workload.name}, after {UPDATES:,} updates", bed.measure_rate(), workload))
    rows.append(memory(f"{workload.name}: memory after updates", bed.engine.get_memory_bytes()))
    share = bed.measure_share_while_updating()
    rows.append(Row(f"{workload.name}: share left beside 100,000 updates/s", round(share, 3), "", 0.7, "higher", ""))
    return rows


def bound_rate(name: str, rate: float, workload: Workload) -> Row:
    anchor = "brute force 88 (Rust), 18 (NumPy)"
    return Row(name, round(rate), "events/s", workload.rate_min if HAS_AVX2 else None, "higher", anchor)


def memory(name: str, size: int) -> Row:
    return Row(name, round(size / 1e6), "MB", 300, "lower", "")


def measure_rivals(workload: Workload) -> dict[str, list[float]]:
    """Events per second of each way of matching, for each of `SIZES`."""
    rates: dict[str, list[float]] = {name: [] for name in ["index", *RIVALS]}
    for size in SIZES:
        print(f"comparing with {size:,} subscriptions", file=sys.stderr)
        bed = Bed(workload, size)
        rates["index"].append(bed.measure_rate())
        boxes, rows = Generator(workload).make_boxes(0, size), bed.generator.make_rows(RIVAL_EVENTS)
        found = bed.engine.match(rows)
        expected = [np.sort(found.get_ids(place)).tolist() for place in range(RIVAL_EVENTS)]
        events = np.asarray(rows.lows).reshape(RIVAL_EVENTS, ATTRIBUTES)
        for name, make in RIVALS.items():
            rates[name].append(measure_rival(name, make(boxes, ATTRIBUTES), events, expected))
    return rates


def measure_rival(name: str, rival: Rival, events: np.ndarray, expected: list[list[int]]) -> float:
    """Events per second, if its answers are right."""
    answers: list[list[int]] = []
    spent = measure_cpu(lambda: answers.extend(map(rival, events)))
    assert answers == expected, f"{name} and the index disagree"
    return len(events) / spent


def measure_streams() -> list[Row]:
    folder = find_data()
    if folder is None:
        print("no shared data: the real streams are left out", file=sys.stderr)
        return []
    return [measure_stream(name, folder / "workloads") for name in STREAMS]


def measure_stream(name: str, folder: Path) -> Row:
    stream, engine = open_stream(name, folder, STREAM_SUBSCRIPTIONS, SEED), NativeEngine()
    engine.add(stream.boxes)
    stream.verify(engine.match(stream.rows))
    spent = measure_cpu(lambda: engine.match(stream.rows))
    found = engine.match(stream.rows)
    events = len(stream.rows.token_starts) - 1
    title = f"{name}, {STREAM_SUBSCRIPTIONS:,} subscriptions, {len(found.ids) / events:.0f} matches per event"
    return Row(title, round(events / spent), "events/s", None, "higher", "checked by brute force")


def draw(rates: dict[str, list[float]], table: list[Row]) -> None:
    figure = Figure(figsize=(9, 3.6))
    left, right = figure.subplots(1, 2)
    for name, series in rates.items():
        left.loglog(SIZES, series, "o-", label=name)
    left.set(xlabel="subscriptions (0.1 % match)", ylabel="events/s, one core")
    bounded = [row for row in table if row.unit == "events/s" and row.bound is not None]
    right.barh([row.metric for row in bounded], [row.value for row in bounded], color="C0", label="measured")
    right.plot([row.bound or 0 for row in bounded], range(len(bounded)), "k|", ms=12, label="wanted")
    right.set(xscale="log", xlabel="events/s, 1,000,000 subscriptions")
    right.tick_params(axis="y", labelsize=6)
    for axes in (left, right):
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "matching.svg")


def measure() -> list[Row]:
    table = [row for workload in TABLE for row in measure_table(workload)]
    table += [bound_rate(workload.name, Bed(workload).measure_rate(), workload) for workload in HARDER]
    rates = measure_rivals(TABLE[1])
    for name, series in rates.items():
        table += [
            Row(f"{name}, {size:,} subscriptions, 0.1 % match", round(rate, 1), "events/s", None, "higher", "")
            for size, rate in zip(SIZES, series, strict=True)
        ]
    table += measure_streams()
    draw(rates, table)
    return table


if __name__ == "__main__":
    if not IS_NATIVE:
        sys.exit("error: the compiled kernel is not built\nhint: install Rust and run `make bench-matching` again")
    sys.exit(write_report("matching", measure()))

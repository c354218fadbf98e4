"""How fast receipts are verified: beside go-ethereum on the same blocks and core, and as the paper's Figure 6 asks it.

Times are CPU times of the process that works, the best of interleaved rounds; the Python call is inside ours.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from matplotlib.figure import Figure
from numpy import corrcoef

from bench.gethbed import REPEATS, GethTimes, open_geth_bed, read_run
from bench.report import RESULTS, Row, write_report
from proofcast.ethereum import columns, kernel
from proofcast.ethereum.bloom import LogFilter
from proofcast.ethereum.columns import LogColumns
from proofcast.ethereum.header import compute_hash, parse_header
from proofcast.ethereum.receipt import BLOOM_LENGTH
from proofcast.testing.ethereum import Recorded

Check = Callable[[Sequence[bytes], bytes, bytes | None], LogColumns]

ROUNDS = 8
TIMES_GETH = {1: 2.0, 4: 4.0, 8: 5.0}
"""Lanes to what they must reach."""
RUNS = 3
PERCENTS = range(0, 101, 10)
BLOCKS = 5_000
PYTHON_BLOCKS = 230
"""The slow path goes through each block ten times only, and its time is scaled up."""
KERNEL_BLOCKS_PER_S = 1_500
PAPER_GETH, PAPER_ENCLAVE = 74.63, 7.94
"""Blocks per second of the paper's two implementations, on an i3-7100T."""
STRANGERS = 2_000
SEED = 2023


def measure(work: Callable[[], object]) -> float:
    """CPU seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began


# --- beside go-ethereum


@dataclass(frozen=True, slots=True)
class Round:
    geth: GethTimes
    lanes: dict[int, float]
    """CPU microseconds per block by the number of hashes side by side."""
    with_blooms: float
    python: float


def measure_rounds(blocks: Sequence[Recorded]) -> list[Round]:
    with open_geth_bed(blocks) as bed:
        return [
            Round(
                bed.measure(),
                {width: measure_lanes(blocks, width) for width in kernel.WIDTHS},
                measure_check(blocks, kernel.check_receipts, REPEATS),
                measure_check(blocks, columns.check_receipts, 1),
            )
            for _ in range(ROUNDS)
        ]


def measure_lanes(blocks: Sequence[Recorded], width: int) -> float:
    """As `kernel.check_receipts` does it, but for the choice of the width."""

    def work() -> None:
        for _ in range(REPEATS):
            for block in blocks:
                LogColumns(*kernel.check_natively(block.receipts, block.header.receipts_root, None, width))

    return measure(work) * 1e6 / (REPEATS * len(blocks))


def measure_check(blocks: Sequence[Recorded], check: Check, repeats: int) -> float:
    def work() -> None:
        for _ in range(repeats):
            for block in blocks:
                check(block.receipts, block.header.receipts_root, block.header.logs_bloom)

    return measure(work) * 1e6 / (repeats * len(blocks))


def compare(rounds: Sequence[Round]) -> list[Row]:
    root, both = (min(getattr(each.geth, name) for each in rounds) for name in ("root", "root_and_bloom"))
    rows = [
        report("go-ethereum 1.17.10, decode and root", root, "us/block"),
        report("... and blooms", both, "us/block"),
    ]
    for width in kernel.WIDTHS:
        own = min(each.lanes[width] for each in rounds)
        rows.append(report(f"kernel, {width} lanes, root and columns", own, "us/block"))
        name = f"kernel, {width} lanes, times go-ethereum"
        rows.append(Row(name, round(root / own, 2), "x", TIMES_GETH[width], "higher", "decode and root, same blocks"))
    blooms = min(each.with_blooms for each in rounds)
    rows.append(report("kernel, blooms recomputed too, times go-ethereum", both / blooms, "x"))
    rows.append(report("Python definition, blooms too", min(each.python for each in rounds), "us/block"))
    return rows


def report(metric: str, value: float, unit: str, anchor: str = "") -> Row:
    return Row(metric, round(value, 2), unit, None, "lower", anchor)


# --- Figure 6


@dataclass(frozen=True, slots=True)
class Sweep:
    """Seconds for `BLOCKS` blocks at each of `PERCENTS`, once per run."""

    runs: list[list[float]]

    @property
    def best(self) -> list[float]:
        return [min(point) for point in zip(*self.runs, strict=True)]

    @property
    def worst(self) -> list[float]:
        return [max(point) for point in zip(*self.runs, strict=True)]


def measure_sweep(blocks: Sequence[Recorded], check: Check, count: int) -> Sweep:
    """Every header is hashed and parsed; of `percent` the bloom is taken to be positive, and receipts are verified."""

    def process(percent: int) -> None:
        for number in range(count):
            block = blocks[number % len(blocks)]
            header = parse_header(block.raw.header)
            compute_hash(block.raw.header)
            if number % 10 * 10 < percent:
                check(block.receipts, header.receipts_root, header.logs_bloom)

    scale = BLOCKS / count
    return Sweep([[measure(partial(process, percent)) * scale for percent in PERCENTS] for _ in range(RUNS)])


def judge_sweep(kernel_sweep: Sweep, python_sweep: Sweep) -> list[Row]:
    paper = f"paper: {PAPER_GETH} with Geth, {PAPER_ENCLAVE} in an enclave"
    rate = round(BLOCKS / kernel_sweep.best[-1])
    straightness = float(corrcoef(PERCENTS, kernel_sweep.best)[0, 1] ** 2)
    return [
        Row("Fig. 6: kernel, every block positive", rate, "blocks/s", KERNEL_BLOCKS_PER_S, "higher", paper),
        Row("Fig. 6: kernel, straightness (r squared)", round(straightness, 4), "", 0.99, "higher", "paper: linear"),
        report("Fig. 6: kernel, slowest of three runs", BLOCKS / kernel_sweep.worst[-1], "blocks/s", paper),
        report("Fig. 6: kernel, no block positive", BLOCKS / kernel_sweep.best[0], "blocks/s", paper),
        report("Fig. 6: Python, every block positive", BLOCKS / python_sweep.best[-1], "blocks/s", paper),
    ]


def draw(kernel_sweep: Sweep, python_sweep: Sweep) -> None:
    figure = Figure(figsize=(7, 4))
    axes = figure.subplots()
    for name, sweep in (("Python definition", python_sweep), ("kernel", kernel_sweep)):
        spread = [[0] * len(PERCENTS), [high - low for low, high in zip(sweep.best, sweep.worst, strict=True)]]
        axes.errorbar(PERCENTS, sweep.best, yerr=spread, fmt="o-", capsize=3, label=name)
    for name, blocks_per_s in (("paper: enclave", PAPER_ENCLAVE), ("paper: Geth", PAPER_GETH)):
        times = [BLOCKS * percent / 100 / blocks_per_s for percent in PERCENTS]
        axes.plot(PERCENTS[1:], times[1:], "--", lw=0.9, label=f"{name}, its CPU and blocks")
    axes.set(xlabel="blocks with a positive bloom, %", ylabel=f"CPU seconds for {BLOCKS:,} blocks", yscale="log")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "verify.svg")


# --- blooms


def measure_blooms(blocks: Sequence[Recorded]) -> list[Row]:
    dice = Random(SEED)
    blooms = b"".join(block.header.logs_bloom for block in blocks)
    addresses = [LogFilter(frozenset({dice.randbytes(20)})) for _ in range(STRANGERS)]
    pairs = [LogFilter(wanted.addresses, (frozenset({dice.randbytes(32)}),)) for wanted in addresses]
    many = blooms * 1_000
    one, thousand = (
        min(measure(partial(kernel.match_blooms, many, some)) for _ in range(RUNS))
        for some in (addresses[:1], pairs[:1_000])
    )
    headers = len(blocks) * 1_000
    anchor = "paper: 0.5 %, of 2018"
    return [
        report("bloom false positives, an address nobody used", count_hits(blooms, addresses), "%", anchor),
        report("bloom false positives, address and topic", count_hits(blooms, pairs), "%", anchor),
        report("header blooms against 1 filter", headers / one / 1e6, "M headers/s"),
        report("header blooms against 1,000 filters", headers / thousand / 1e6, "M headers/s"),
    ]


def count_hits(blooms: bytes, filters: Sequence[LogFilter]) -> float:
    bitmaps = kernel.match_blooms(blooms, filters)
    hits = sum(int.from_bytes(bitmap, "little").bit_count() for bitmap in bitmaps)
    return 100 * hits / (len(filters) * len(blooms) / BLOOM_LENGTH)


def main() -> int:
    if not kernel.IS_NATIVE:
        sys.exit("error: the kernel is not built\nhint: `tools/native` builds it where Rust is installed")
    blocks = read_run()
    rows = compare(measure_rounds(blocks))
    print(f"Figure 6: {len(PERCENTS)} points of {BLOCKS:,} blocks, {RUNS} runs", file=sys.stderr)
    sweeps = (
        measure_sweep(blocks, kernel.check_receipts, BLOCKS),
        measure_sweep(blocks, columns.check_receipts, PYTHON_BLOCKS),
    )
    draw(*sweeps)
    return write_report("verify", rows + judge_sweep(*sweeps) + measure_blooms(blocks))


if __name__ == "__main__":
    sys.exit(main())

"""How fast Spark turns receipts into verified rows, beside go-ethereum verifying the same receipts in one thread.

Both are given bytes in memory; times are CPU times of all processes, and a rate on two cores is twice the blocks per
CPU second. Wall times are reported too: they say more on a machine that has nothing else to do.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from bench.gethbed import open_geth_bed, read_run
from bench.processes import measure_cpu_s, watch_memory
from bench.repeated import write_repeated
from bench.report import RESULTS, Row, write_report
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.session import build_session
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.backfill import backfill
from proofcast.pipeline.schemas import Table

CORES = 2
WARM_UP, BLOCKS = 1_000, 8_000
FEW, MANY = 1_000, 100_000
COUNTED, ONE_TABLE, ALL_TABLES = "verified logs counted", "logs table in Delta", "all tables in Delta"
TIMES_GETH = {COUNTED: 2.5, ONE_TABLE: 1.25, ALL_TABLES: 0.7}
MEMORY_MB_MAX = 4_096
GROWTH_MAX, MEMORY_GROWTH_MAX = 1.2, 1.1

Work = Callable[[int], object]
"""Takes the number of blocks."""


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_us: float
    """Per block, of all processes."""
    wall_us: float
    memory_mb: float


def measure(work: Work, blocks: int) -> Cost:
    with watch_memory() as peak:
        cpu, wall = measure_cpu_s(), time.monotonic()
        work(blocks)
        spent = measure_cpu_s() - cpu, time.monotonic() - wall
    return Cost(spent[0] * 1e6 / blocks, spent[1] * 1e6 / blocks, peak.mb)


@dataclass(frozen=True, slots=True)
class Bed:
    spark: SparkSession
    source: str
    folder: Path

    def count(self, blocks: int) -> None:
        """The logs of each block, verified where they are read; a few columns of each go through Spark."""
        options = {"first": "1", "last": str(blocks), "columns": "number,address,topic0"}
        logs = self.spark.read.format("evm").options(source=self.source, **options).load()
        assert logs.filter("topic0 is not null").count() > blocks

    def write_logs(self, blocks: int) -> None:
        self._backfill(blocks, (Table.LOGS, Table.BLOCKS))

    def write_all(self, blocks: int) -> None:
        self._backfill(blocks, tuple(Table))

    def _backfill(self, blocks: int, kept: Collection[Table]) -> None:
        target = self._get_empty("tables")
        options = {"source": self.source, "first": "1", "last": str(blocks)}
        end = backfill(self.spark, Tables(target), options, [get_own_abi()], f"{target}/scratch", kept=kept)
        assert end is not None, "nothing was written"
        assert end.number == blocks, f"the tables end at `{end.number}`"

    def _get_empty(self, name: str) -> str:
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return str(self.folder / name)


def measure_rates(bed: Bed) -> dict[str, Cost]:
    works: dict[str, Work] = {COUNTED: bed.count, ONE_TABLE: bed.write_logs, ALL_TABLES: bed.write_all}
    costs = {}
    for name, work in works.items():
        work(WARM_UP)
        costs[name] = measure(work, BLOCKS)
        print(f"{name}: {costs[name]}", file=sys.stderr)
    return costs


def build_rows(costs: dict[str, Cost], geth_us: float, few: Cost, many: Cost) -> list[Row]:
    rows = [Row("go-ethereum, one thread, decode and root", round(geth_us), "us/block", None, "lower", "")]
    for name, cost in costs.items():
        times, wall = CORES * geth_us / cost.cpu_us, geth_us / cost.wall_us
        rows.append(Row(f"{name}, times go-ethereum", round(times, 2), "x", TIMES_GETH[name], "higher", "one thread"))
        rows.append(Row(f"{name}, by wall time", round(wall, 2), "x", None, "higher", "the same, wall time of ours"))
        rows.append(Row(f"{name}, CPU", round(cost.cpu_us), "us/block", None, "lower", ""))
    growth, memory = many.cpu_us / few.cpu_us, many.memory_mb / few.memory_mb
    peak = max(many.memory_mb, *(cost.memory_mb for cost in costs.values()))
    return [
        *rows,
        Row(f"CPU per block, {MANY:,} over {FEW:,}", round(growth, 2), "x", GROWTH_MAX, "lower", ""),
        Row(f"memory, {MANY:,} over {FEW:,}", round(memory, 2), "x", MEMORY_GROWTH_MAX, "lower", ""),
        Row("peak memory of all processes", round(peak), "MB", MEMORY_MB_MAX, "lower", ""),
    ]


def draw(costs: dict[str, Cost], geth_us: float) -> None:
    figure = Figure(figsize=(7, 2.8))
    axes = figure.subplots()
    names = [*costs, "go-ethereum, one thread"]
    rates = [*(CORES * 1e6 / cost.cpu_us for cost in costs.values()), 1e6 / geth_us]
    axes.barh(names, rates, color=["C0"] * len(costs) + ["C7"])
    axes.set(xlabel="blocks/s on two cores, from CPU time")
    figure.tight_layout()
    figure.savefig(RESULTS / "pipeline.svg")


def main() -> int:
    blocks = read_run()
    with tempfile.TemporaryDirectory(prefix="proofcast-") as name:
        source = write_repeated(Path(name) / "chain", blocks, MANY)
        spark = build_session(f"local[{CORES}]", {"spark.driver.memory": "2g"})
        bed = Bed(spark, source, Path(name))
        costs = measure_rates(bed)
        with open_geth_bed(blocks) as geth:
            geth_us = min(geth.measure().root for _ in range(3))
        few, many = (measure(bed.count, count) for count in (FEW, MANY))
        spark.stop()
    draw(costs, geth_us)
    return write_report("pipeline", build_rows(costs, geth_us, few, many))


if __name__ == "__main__":
    sys.exit(main())

"""How fast Spark turns receipts into verified rows, beside go-ethereum verifying the same receipts in one thread.

Both are given bytes in memory; times are CPU times of all processes, and a rate on two cores is twice the blocks per
CPU second. Wall times are reported too: they say more on a machine that has nothing else to do. Beside ethereum-etl we
read a node over HTTP, and the CPU time of either side's processes is compared, the node's left out.

`PROOFCAST_PIPELINE_SCALE=0.1` makes everything a tenth as long, to see that it runs; figures are those of 1.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import DataFrame, SparkSession

from bench.etl import LogRow, RecordedNode, extract, install
from bench.gethbed import open_geth_bed, read_run
from bench.processes import measure_cpu_s, measure_descendants_cpu_s, watch_memory
from bench.repeated import write_repeated
from bench.report import RESULTS, Row, write_report
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.session import build_session
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.backfill import backfill
from proofcast.pipeline.schemas import TOPICS, Table
from proofcast.testing.ethereum import Recorded

CORES = 2
SCALE = float(os.environ.get("PROOFCAST_PIPELINE_SCALE", "1"))
WARM_UP, BLOCKS = int(12_000 * SCALE), int(36_000 * SCALE)
"""The JVM's compilers are done after some twenty seconds."""
FEW, MANY = int(1_000 * SCALE), int(100_000 * SCALE)
ETL_BLOCKS = int(3_680 * SCALE)
"""Enough that what a Spark job costs before its first row is not most of it."""
COUNTED, ONE_TABLE, ALL_TABLES = "verified logs counted", "logs table in Delta", "all tables in Delta"
TIMES_GETH = {COUNTED: 2.5, ONE_TABLE: 1.25, ALL_TABLES: 0.7}
MEMORY_MB_MAX = 4_096
GROWTH_MAX, MEMORY_GROWTH_MAX = 1.2, 1.1
TIMES_ETL = 10

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
        """The logs of each block, verified where they are read; a row of each goes through Spark, with its number."""
        options = {"first": "1", "last": str(blocks), "columns": "number"}
        assert self.spark.read.format("evm").options(source=self.source, **options).load().count() > blocks

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


def measure_etl(bed: Bed, blocks: Sequence[Recorded]) -> tuple[float, float]:
    """CPU milliseconds per block of ethereum-etl and of ours, for the same logs of the same node."""
    with RecordedNode(blocks, ETL_BLOCKS) as node, tempfile.TemporaryDirectory(prefix="proofcast-") as folder:
        theirs, their_s = extract(install(), node.url, ETL_BLOCKS, Path(folder))
        read_node(bed.spark, node.url, f"{folder}/first")
        before = measure_descendants_cpu_s()
        ours = read_node(bed.spark, node.url, f"{folder}/logs")
        our_s = measure_descendants_cpu_s() - before
        assert sorted(theirs) == sorted(read_log_rows(ours)), "the two read different logs"
    return 1e3 * their_s / ETL_BLOCKS, 1e3 * our_s / ETL_BLOCKS


def read_node(spark: SparkSession, url: str, target: str) -> DataFrame:
    """All logs of the node, verified, into a table."""
    options = {"source": url, "first": "1", "last": str(ETL_BLOCKS), "finality": "latest", "blocks_per_partition": "64"}
    tables = Tables(target)
    backfill(spark, tables, options, [], f"{target}/scratch", kept=(Table.LOGS, Table.BLOCKS))
    return tables.read(spark, Table.LOGS)


def read_log_rows(logs: DataFrame) -> list[LogRow]:
    rows = logs.select("number", "log_index", "address", *TOPICS, "data").collect()
    return [
        (row[0], row[1], show(row[2]), ",".join(show(topic) for topic in row[3:7] if topic is not None), show(row[7]))
        for row in rows
    ]


def show(value: bytearray) -> str:
    return f"0x{value.hex()}"


def build_rows(costs: dict[str, Cost], geth_us: float, few: Cost, many: Cost, etl_ms: tuple[float, float]) -> list[Row]:
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
        Row("ethereum-etl 2.4.2, CPU", round(etl_ms[0], 1), "ms/block", None, "lower", "logs of a node, believed"),
        Row("ours, CPU", round(etl_ms[1], 1), "ms/block", None, "lower", "the same logs, verified"),
        Row("times ethereum-etl", round(etl_ms[0] / etl_ms[1], 1), "x", TIMES_ETL, "higher", "CPU time"),
        Row("peak memory of all processes", round(peak), "MB", MEMORY_MB_MAX, "lower", ""),
    ]


def draw(name: str, costs: dict[str, Cost], geth_us: float) -> None:
    figure = Figure(figsize=(7, 2.8))
    axes = figure.subplots()
    names = [*costs, "go-ethereum, one thread"]
    rates = [*(CORES * 1e6 / cost.cpu_us for cost in costs.values()), 1e6 / geth_us]
    axes.barh(names, rates, color=["C0"] * len(costs) + ["C7"])
    axes.set(xlabel="blocks/s on two cores, from CPU time")
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.svg")


def main() -> int:
    blocks = read_run()
    with tempfile.TemporaryDirectory(prefix="proofcast-") as name:
        source = write_repeated(Path(name) / "chain", blocks, MANY)
        spark = build_session(f"local[{CORES}]")
        bed = Bed(spark, source, Path(name))
        costs = measure_rates(bed)
        with open_geth_bed(blocks) as geth:
            geth_us = min(geth.measure().root for _ in range(3))
        few, many = (measure(bed.count, count) for count in (FEW, MANY))
        etl_ms = measure_etl(bed, blocks)
        spark.stop()
    name = "pipeline" if SCALE == 1 else "pipeline-small"
    draw(name, costs, geth_us)
    return write_report(name, build_rows(costs, geth_us, few, many, etl_ms))


if __name__ == "__main__":
    sys.exit(main())

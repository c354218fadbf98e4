"""Print the page of figures, made from results of benchmarks; `make docs` writes it to docs/reference/figures.md."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.report import RESULTS, Row

ROOT = Path(__file__).parents[1]
HEADER = """# Figures

Made by `make docs` from `bench/results/`, which real runs wrote; `make bench-NAME` runs one again. A bound is what
the figure must reach; where it does not, the last column says so. Each table names its machine by the CPU seconds of a
fixed loop: compare ratios, not machines. A long table is shown by its misses; the file has all rows.
"""
TARGET = re.compile(r"^bench-([\w-]+):.*## (.+)$", re.MULTILINE)
FILES = {"idle": "broker_idle"}
"""Where it is not the target's own name."""
ROWS_MAX = 30


def format_tables() -> Iterator[str]:
    for target, meaning in sorted(TARGET.findall((ROOT / "Makefile").read_text())):
        name = FILES.get(target, target.replace("-", "_"))
        path = RESULTS / f"{name}.json"
        yield f"## bench-{target}\n\n{meaning[:1].upper()}{meaning[1:]}.\n"
        yield "".join(format_table(name, json.loads(path.read_text()))) if path.exists() else "No whole run yet.\n"


def format_table(name: str, report: dict[str, Any]) -> Iterator[str]:
    rows, machine = [Row(**row) for row in report["rows"]], report["machine"]
    missed = [row for row in rows if not row.is_reached]
    judged = [row for row in rows if row.bound is not None]
    shown = rows if len(rows) <= ROWS_MAX else missed
    yield f"{machine['cpu']} ({', '.join(machine['flags'])}), {machine['calibration_cpu_s']} s: "
    yield f"{len(judged) - len(missed)} of {len(judged)} bounds reached.\n\n"
    if shown:
        yield "| figure | value | bound | |\n|---|---:|---:|---|\n"
        yield from map(format_row, shown)
        yield "\n"
    if (RESULTS / f"{name}.svg").exists():
        yield f"![{name.replace('_', ' ')}](../../bench/results/{name}.svg)\n"


def format_row(row: Row) -> str:
    sign = "≥" if row.better == "higher" else "≤"
    bound = "" if row.bound is None else f"{sign} {row.bound:,.10g}"
    verdict = "" if row.is_reached else "missed"
    return f"| {row.metric.strip()} | {row.value:,.10g} {row.unit} | {bound} | {verdict} |\n"


if __name__ == "__main__":
    sys.stdout.write("\n".join([HEADER, *format_tables()]))

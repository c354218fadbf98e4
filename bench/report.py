"""A table of figures: written as JSON beside its plot, printed, and judged by its bounds."""

import json
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

RESULTS = Path(__file__).parent / "results"
CALIBRATION_ROUNDS = 5_000_000
"""About a second on the machines of 2026: long enough to tell a slow one from a fast one."""


@dataclass(frozen=True, slots=True)
class Row:
    metric: str
    value: float
    unit: str
    bound: float | None
    """What the figure must reach; None where it is only reported."""
    better: Literal["higher", "lower"]
    anchor: str
    """What it is compared with."""

    @property
    def is_reached(self) -> bool:
        if self.bound is None:
            return True
        return self.value >= self.bound if self.better == "higher" else self.value <= self.bound


def write_report(name: str, rows: Sequence[Row]) -> int:
    """Write `results/NAME.json`, print the table, and return the exit code: 1 where a bound is missed."""
    RESULTS.mkdir(exist_ok=True)
    report = {"machine": describe_machine(), "rows": [asdict(row) for row in rows]}
    (RESULTS / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    for row in rows:
        bound = "" if row.bound is None else f"{'>=' if row.better == 'higher' else '<='} {row.bound:,.10g}"
        verdict = "" if row.bound is None else ("reached" if row.is_reached else "MISSED")
        print(f"{row.metric:<66} {row.value:>14,.10g} {row.unit:<12} {bound:<16} {verdict}")
    missed = [row.metric for row in rows if not row.is_reached]
    print(f"{len(rows) - len(missed)} rows as wanted, {len(missed)} missed", file=sys.stderr)
    return 1 if missed else 0


def describe_machine() -> dict[str, object]:
    facts = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    fields = dict(line.split(":", 1) for line in facts.splitlines() if ":" in line)
    named = {key.strip(): value.strip() for key, value in fields.items()}
    return {
        "cpu": named.get("model name", platform.processor()),
        "flags": [flag for flag in ("avx2", "avx512f", "bmi2", "sha_ni") if flag in named.get("flags", "").split()],
        "calibration_cpu_s": round(measure_calibration(), 3),
    }


def measure_calibration() -> float:
    """CPU seconds of a fixed loop, to compare machines by."""
    began = time.process_time()
    total = 0
    for number in range(CALIBRATION_ROUNDS):
        total ^= number * number
    return time.process_time() - began

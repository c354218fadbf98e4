"""The committed gas table of exchanges is what the contract in the package costs."""

import json

import pytest

from bench.exchanges import measure_deliveries, open_bed
from bench.report import RESULTS

TOLERANCE_GAS = 150
"""Zero bytes in addresses and hashes make calldata a little cheaper or dearer from run to run."""


@pytest.mark.needs("anvil")
def test_committed_figures_are_those_of_this_code() -> None:
    rows = json.loads((RESULTS / "exchanges.json").read_text())["rows"]
    committed = {row["metric"]: row["value"] for row in rows}
    with open_bed() as bed:
        measured = {row.metric: row.value for row in measure_deliveries(bed)}
    for metric, value in measured.items():
        assert abs(value - committed[metric]) <= TOLERANCE_GAS, f"{metric}: {value}, run `make bench-exchanges` again"

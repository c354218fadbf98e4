"""The committed gas table is what the contracts of this checkout cost."""

import json

import pytest

from bench.gasbed import build_contracts, get_gas, open_gas_bed
from bench.report import RESULTS

pytestmark = pytest.mark.needs("anvil", "forge")

TOLERANCE_GAS = 150
"""Zero bytes in addresses and hashes make calldata a little cheaper or dearer from run to run."""


def test_committed_figures_are_those_of_this_code() -> None:
    rows = json.loads((RESULTS / "gas.json").read_text())["rows"]
    committed = {row["metric"]: row["value"] for row in rows}
    build_contracts()
    with open_gas_bed() as bed:
        publisher, topic, register = bed.add_publisher()
        bed.add_store(topic)
        publish = get_gas(bed.publish(publisher))
        measured = {
            "deploy": bed.deploy_gas,
            "register, default policy": register,
            "publish to 1 that stores 64 characters": publish,
        }
    for metric, value in measured.items():
        assert abs(value - committed[metric]) <= TOLERANCE_GAS, f"{metric}: measured {value}, `make bench-gas` again"

"""The artefacts in the package are what the contracts compile to."""

import subprocess
import sys
from pathlib import Path

import pytest

from proofcast.onchain.deployment import compute_address
from proofcast.onchain.io.artefacts import get_contracts, load_artefact

COMPILE_S_MAX = 600


@pytest.mark.needs("forge", "node")
@pytest.mark.slow
def test_artefacts_are_up_to_date(root: Path) -> None:
    command = [sys.executable, "tools/artefacts.py", "--check"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=COMPILE_S_MAX, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_address_depends_on_the_code_alone() -> None:
    code = load_artefact("Topics").creation_code
    assert get_contracts().topics == compute_address(code)
    assert get_contracts().topics != compute_address(code + b"\0")


def test_address_is_that_of_eip_1014() -> None:
    """Creation code 0x00 by the deployment proxy, worked out with the EIP's formula by hand."""
    assert compute_address(b"\0").hex() == "24c4fd2db1cf4cb1aec651cc0e060a00d400e784"

"""The example script does what it says, in a process of its own like a user's."""

import subprocess
import sys
from pathlib import Path

import pytest

from proofcast.chain.io.recorded import write_blocks
from proofcast.testing.chain import ChainSimulator

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]


def test_busiest_contracts(root: Path, tmp_path: Path) -> None:
    chain = ChainSimulator(13)
    write_blocks(tmp_path, chain.chain_id, [block.raw for block in chain.mine(4)])
    plot = tmp_path / "plot.svg"
    command = [sys.executable, root / "docs/examples/busiest_contracts.py", tmp_path, "1", "4", plot]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert f"4 blocks read; {plot} written" in answer.stdout
    assert "<svg" in plot.read_text()

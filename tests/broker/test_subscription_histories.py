"""Random histories against the machine; `make bench-kill-broker` runs a thousand of them."""

import tempfile
from pathlib import Path

import pytest

from proofcast.testing.broker.acknowledging import run_history

MEMORY = Path("/dev/shm")
"""Where there is one the feeds are in memory: what a disk does is of no concern here."""


@pytest.mark.slow
def test_every_history_ends_with_the_chain_s_own_view(tmp_path: Path) -> None:
    """At least once and in order; what is acknowledged never comes again; a finalized subscriber undoes nothing."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as folder:
        for seed in range(60):
            run_history(Path(folder) / str(seed), seed)

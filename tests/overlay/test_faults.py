"""What the overlay promises to survive; `bench-overlay-faults` runs a thousand seeds of the same."""

import os
import subprocess
import sys

import pytest

from proofcast.testing.overlay.ordeal import undergo

SEEDS = range(20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_misses_anything_after_healing(seed: int) -> None:
    _, verdict = undergo(seed)
    assert (verdict.missing, verdict.twice, verdict.unexpected) == ((), 0, 0), f"seed {seed}: {verdict}"
    assert verdict.expected > 0, f"seed {seed} tests nothing"


RUN = "from proofcast.testing.overlay.ordeal import undergo; print(undergo(3)[0].trace.hexdigest())"


@pytest.mark.slow
def test_same_seed_same_trace_under_any_hash_seed() -> None:
    traces = {
        subprocess.run(
            [sys.executable, "-c", RUN],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "77")
    }
    assert len(traces) == 1

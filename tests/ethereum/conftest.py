"""Real blocks, read once."""

from collections.abc import Sequence

import pytest

from proofcast.cli import doctor
from proofcast.testing.ethereum import Recorded, read_recorded


@pytest.fixture(scope="session")
def recorded() -> Sequence[Recorded]:
    folder = doctor.find_data()
    assert folder, "only tests that need `data` ask for it"
    return read_recorded(folder / "blocks")


@pytest.fixture
def big_block(recorded: Sequence[Recorded]) -> Recorded:
    """Some hundred receipts of three types."""
    return next(block for block in recorded if block.header.number == 17_686_110)

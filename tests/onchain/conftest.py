"""A chain per test module, set back after every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proofcast.onchain.io.devchain import DevChainOptions
from proofcast.testing.onchain import Playground, rolled_back, run_playground


@pytest.fixture(scope="module")
def shared_playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    with run_playground(tmp_path_factory.mktemp("deployer"), DevChainOptions(tx_gas_limit=True)) as playground:
        yield playground


@pytest.fixture
def playground(shared_playground: Playground, tmp_path: Path) -> Iterator[Playground]:
    with rolled_back(shared_playground, tmp_path) as fresh:
        yield fresh

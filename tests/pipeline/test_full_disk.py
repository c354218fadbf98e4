"""A full disk is one sentence; with more space the same job goes on, and nothing is lost."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from proofcast.chain.io.recorded import write_blocks
from proofcast.errors import Unavailable
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.failures import spoken
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.backfill import backfill
from proofcast.pipeline.schemas import Table
from proofcast.testing.chain import ChainSimulator

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 40 kB: one table fits and the next does not."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk: run as root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_full_disk_loses_nothing(spark: SparkSession, disk: Path, tmp_path: Path) -> None:
    chain = ChainSimulator(12)
    chain.mine(3)
    source = tmp_path / "recorded"
    write_blocks(source, chain.chain_id, [block.raw for block in chain.canonical[1:]])
    tables, options = Tables(str(disk / "tables")), {"source": str(source), "first": "1"}
    with pytest.raises(Unavailable, match="no space is left"), spoken():
        backfill(spark, tables, options, [get_own_abi()], str(tmp_path / "first"))
    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    backfill(spark, tables, options, [get_own_abi()], str(tmp_path / "second"))
    assert tables.read(spark, Table.LOGS).count() == sum(len(block.logs) for block in chain.canonical[1:])

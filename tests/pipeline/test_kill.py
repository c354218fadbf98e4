"""`kill -9` of the whole process tree, at different points: nothing is lost and nothing is there twice.

`bench/kill.py` does the same fifty times.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from proofcast.chain.io.recorded import write_blocks
from proofcast.chain.io.source import open_source
from proofcast.event import Step
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.backfill import backfill
from proofcast.pipeline.schemas import Table
from proofcast.testing.chain import ChainSimulator, SimulatedNode
from proofcast.testing.pipeline import run_follow, run_killable

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]
SEED = 9


def test_killed_backfill_goes_on(spark: SparkSession, tmp_path: Path, scratch: str) -> None:
    chain = ChainSimulator(SEED)
    chain.mine(6)
    source = tmp_path / "recorded"
    write_blocks(source, chain.chain_id, [block.raw for block in chain.canonical[1:]])
    arguments = ["backfill", str(source), str(tmp_path)]
    for kill_at in (3, 10, 5):  # within an append; when the first batch is whole; between two tables
        assert run_killable(arguments, kill_at) == kill_at
    tables = Tables(str(tmp_path / "tables"))
    backfill(spark, tables, {"source": str(source), "first": "1"}, [get_own_abi()], scratch)
    logs = tables.read(spark, Table.LOGS).select("number", "log_index", "data").collect()
    assert sorted(map(tuple, logs)) == [
        (block.header.number, at, log.data) for block in chain.canonical[1:] for at, log in enumerate(block.logs)
    ]


def test_killed_follow_goes_on(spark: SparkSession, tmp_path: Path, scratch: str) -> None:
    with SimulatedNode(ChainSimulator(SEED)) as node:
        chain = node.chain
        chain.mine(6)
        arguments = ["follow", node.url, str(tmp_path)]
        for kill_at in (4, 2):
            assert run_killable([*arguments, "99"], kill_at) == kill_at
            chain.reorg(2)
        run_follow(spark, open_source(node.url), tmp_path, chain.head.header.number, scratch)
    steps = [entry.step for entry in Journal(tmp_path / "feed").read(0)]
    expected = [
        (step.sequence, at, step.step, log.data)
        for step in steps
        if step.step is not Step.FINAL
        for at, log in enumerate(chain.blocks[step.hash].logs)
    ]
    rows = Outbox(tmp_path / "feed").read(chain.chain_id)
    assert [(row.sequence, row.position.log_index, row.step, row.log.data) for row in rows] == expected
    tables = Tables(str(tmp_path / "tables"))
    logs = tables.read(spark, Table.LOGS).select("sequence", "log_index", "data").collect()
    assert sorted(map(tuple, logs)) == [(row[0], row[1], row[3]) for row in expected if row[2] is Step.APPLY]
    written = tables.read(spark, Table.BLOCKS).orderBy("sequence").select("sequence", "step").collect()
    assert [tuple(row) for row in written] == [(step.sequence, step.step) for step in steps]

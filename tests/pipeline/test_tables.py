"""Tables: cut off anywhere they go on; what was changed in them is found; the canonical view is that of an oracle."""

import random
from functools import reduce
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from proofcast.chain.io.recorded import write_blocks
from proofcast.chain.segment import BlockId
from proofcast.chain.steps import BlockLink, CanonicalChain, ChainStep
from proofcast.errors import InvalidRequest
from proofcast.ethereum.abi import parse_abi
from proofcast.event import Finality
from proofcast.pipeline.decoding import Abi
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.audit import audit
from proofcast.pipeline.jobs.backfill import backfill
from proofcast.pipeline.jobs.compact import compact
from proofcast.pipeline.jobs.decode import decode
from proofcast.pipeline.jobs.status import find_status
from proofcast.pipeline.schemas import Table, get_spark_schema
from proofcast.pipeline.transforms import select_canonical
from proofcast.testing.chain import ChainSimulator
from proofcast.testing.pipeline import CrashingTables

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]
SEED = 6
HISTORIES = 10


@pytest.fixture(scope="module")
def chain() -> ChainSimulator:
    simulator = ChainSimulator(SEED)
    simulator.mine(8)
    return simulator


@pytest.fixture(scope="module")
def recorded(chain: ChainSimulator, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("recorded")
    write_blocks(folder, chain.chain_id, [block.raw for block in chain.canonical[1:]])
    return str(folder)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, recorded: str, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Filled by a run that was cut off before the watermark of its first batch, and between tables of its second.

    Each with another size of batches: a table may have more, or less, of a batch than the next run brings.
    """
    folder = tmp_path_factory.mktemp("tables")
    for per_batch, crash_at in ((3, 4), (2, 6)):
        with pytest.raises(PySparkException, match="SimulatedCrash"):
            fill(spark, CrashingTables(str(folder), crash_at), recorded, per_batch, folder / f"run{crash_at}")
    fill(spark, Tables(str(folder)), recorded, 8, folder / "last")
    return Tables(str(folder))


def fill(spark: SparkSession, tables: Tables, recorded: str, per_batch: int, scratch: Path) -> None:
    options = {"source": recorded, "first": "1", "blocks_per_batch": str(per_batch), "blocks_per_partition": "2"}
    backfill(spark, tables, options, [get_own_abi()], str(scratch))


def test_cut_off_runs_lose_nothing_and_repeat_nothing(
    spark: SparkSession, chain: ChainSimulator, tables: Tables
) -> None:
    blocks = chain.canonical[1:]
    logs = tables.read(spark, Table.LOGS).select("number", "log_index", "address", "data").collect()
    assert sorted(map(tuple, logs)) == sorted(
        (block.header.number, at, log.address, log.data) for block in blocks for at, log in enumerate(block.logs)
    )
    applied = tables.read(spark, Table.BLOCKS).filter("step = 'apply'").select("number", "block_hash").collect()
    assert sorted(map(tuple, applied)) == [(block.header.number, block.hash) for block in blocks]
    transactions = tables.read(spark, Table.TRANSACTIONS).select("raw").collect()
    assert sorted(row.raw for row in transactions) == sorted(
        raw for block in blocks for raw in block.raw.transactions or ()
    )
    status = find_status(spark, tables)
    assert status is not None
    assert (status.first, status.end.number, status.finalized, status.blocks) == (1, 8, 8, 8)


def test_gap_and_second_start_are_refused(spark: SparkSession, recorded: str, tables: Tables, scratch: str) -> None:
    with pytest.raises(InvalidRequest, match="end at block `8`"):
        backfill(spark, tables, {"source": recorded, "first": "10"}, [get_own_abi()], scratch)


def test_decode_adds_each_event_once(spark: SparkSession, chain: ChainSimulator, tables: Tables) -> None:
    address = next(log.address for block in chain.canonical[1:] for log in block.logs)
    words = [{"name": f"word{at}", "type": "bytes32", "indexed": True} for at in range(4)]
    forms = [{"type": "event", "name": "Quiet", "anonymous": True, "inputs": words[:count]} for count in range(5)]
    abi = Abi("Quiet", parse_abi(forms), frozenset({address}))
    logs = [log for block in chain.canonical[1:] for log in block.logs if log.address == address]
    assert decode(spark, tables, abi) == len(logs)
    assert decode(spark, tables, abi) == 0
    assert tables.read(spark, Table.EVENTS).filter("abi = 'Quiet'").count() == len(logs)


def test_audit_names_the_first_bad_block(spark: SparkSession, chain: ChainSimulator, tables: Tables) -> None:
    clean = audit(spark, tables)
    assert clean.first_bad is None
    assert (clean.blocks, clean.logs) == (8, sum(len(block.logs) for block in chain.canonical[1:]))
    number = next(block.header.number for block in chain.canonical[2:] if block.logs)
    name = tables.get_name(Table.LOGS)
    spark.sql(f"UPDATE {name} SET data = X'00' WHERE number = {number} AND log_index = 0")
    found = audit(spark, tables).first_bad
    assert found is not None
    assert (found.number, found.hash) == (number, chain.canonical[number].hash)
    assert compact(spark, tables)["logs"] == 1


# --- the canonical view


def draw_history(seed: int) -> tuple[list[ChainStep], CanonicalChain]:
    """Random branches and marks of finality, through the pure machine."""
    dice, machine, steps = random.Random(seed), CanonicalChain(BlockId(0, bytes(32))), list[ChainStep]()
    for _ in range(dice.randint(5, 25)):
        links = [
            BlockId(machine.get_settled(Finality.FINALIZED).number, b""),
            *(link.id for link in machine.list_links()),
        ]
        parent = machine.get_settled(Finality.FINALIZED) if len(links) == 1 else machine.head
        if len(links) > 1 and dice.random() < 0.4:
            parent = dice.choice([machine.get_settled(Finality.FINALIZED), *links[1:]])
        branch = []
        for number in range(parent.number + 1, machine.head.number + dice.randint(2, 4)):
            branch.append(BlockLink(number, dice.randbytes(32), branch[-1].hash if branch else parent.hash))
        steps += machine.adopt(branch)
        finality = dice.choice([Finality.SAFE, Finality.FINALIZED])
        steps += machine.settle(finality, dice.choice([link.id for link in machine.list_links()]))
    return steps, machine


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_canonical_view_is_the_oracles(spark: SparkSession, seed: int) -> None:
    print(f"seed {seed}")
    steps, machine = draw_history(seed)
    schema = get_spark_schema(Table.BLOCKS)
    known = dict.fromkeys(schema.fieldNames())
    rows = [
        known
        | {"sequence": step.sequence, "number": step.number, "block_hash": step.hash, "step": step.step.value}
        | {"finality": step.finality.value}
        for step in steps
    ]
    blocks = spark.createDataFrame([tuple(row.values()) for row in rows], schema)
    expected: dict[int, bytes] = {}
    for step in steps:  # the brute-force way: do what each step says
        if step.step == "apply":
            expected[step.number] = step.hash
        elif step.step == "undo":
            assert expected.pop(step.number) == step.hash
    views = [select_canonical(blocks, blocks, at).select(sql.lit(at.value), "number", "block_hash") for at in Finality]
    found = {tuple(row) for row in reduce(DataFrame.union, views).collect()}
    limits = {finality: machine.get_settled(finality).number for finality in Finality}
    assert found == {
        (finality, number, block_hash)
        for finality, limit in limits.items()
        for number, block_hash in expected.items()
        if number <= limit
    }

"""Arrow batches say what plain functions say of the same blocks; no Spark is needed for that."""

import pyarrow as pa
import pytest

from proofcast.chain.profile import get_profile
from proofcast.chain.steps import ChainStep
from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedBlock, verify_block
from proofcast.errors import InvalidRequest
from proofcast.ethereum.bloom import LogFilter
from proofcast.ethereum.receipt import Log
from proofcast.event import Finality, Step
from proofcast.feed.journal import JournalEntry
from proofcast.pipeline.io.reading import verify_entry
from proofcast.pipeline.rows import StepRow, build_table, select_logs
from proofcast.pipeline.schemas import ARROW, CHANGES, TOPICS, Table
from proofcast.testing.chain import ChainSimulator

SEED = 4


@pytest.fixture(scope="module")
def chain() -> ChainSimulator:
    simulator = ChainSimulator(SEED)
    simulator.mine(5)
    return simulator


@pytest.fixture(scope="module")
def steps(chain: ChainSimulator) -> list[StepRow]:
    """Blocks 1 to 5 applied, the last one undone, and a mark of finality."""
    verified = [verify_block(block.raw, get_profile(chain.chain_id), block.hash) for block in chain.canonical[1:]]
    applied = [build_step(number, Step.APPLY, block) for number, block in enumerate(verified, start=1)]
    final = StepRow(7, Step.FINAL, 3, verified[2].hash, Trust.LINKED, Finality.FINALIZED, chain.chain_id, None)
    return [*applied, build_step(6, Step.UNDO, verified[-1]), final]


def build_step(sequence: int, step: Step, block: VerifiedBlock) -> StepRow:
    number = block.header.number
    return StepRow(sequence, step, number, block.hash, block.trust, Finality.LATEST, 31_337, block)


def read_logs(rows: pa.RecordBatch) -> list[tuple[int, int, Log]]:
    return [
        (row["sequence"], row["log_index"], Log(row["address"], get_topics(row), row["data"]))
        for row in rows.to_pylist()
    ]


def get_topics(row: dict[str, bytes | None]) -> tuple[bytes, ...]:
    return tuple(topic for topic in (row[name] for name in TOPICS) if topic is not None)


def list_expected(chain: ChainSimulator) -> list[tuple[int, int, Log]]:
    return [(block.header.number, at, log) for block in chain.canonical[1:] for at, log in enumerate(block.logs)]


@pytest.mark.parametrize("step", [Step.APPLY, Step.UNDO])
def test_step_whose_bytes_are_gone_is_refused(step: Step) -> None:
    gone = ChainStep(9, step, 5, bytes(32), bytes(32), Trust.LINKED, Finality.LATEST)
    with pytest.raises(InvalidRequest, match=f"bytes of block `5`, step `9` .`{step}`."):
        verify_entry(JournalEntry(gone, None), 31_337)


@pytest.mark.parametrize("table", [CHANGES, Table.BLOCKS, Table.RECEIPTS, Table.LOGS, Table.TRANSACTIONS])
def test_batch_has_exactly_the_schema(steps: list[StepRow], table: str) -> None:
    rows = build_table(steps, table)
    assert rows.schema == ARROW[table]
    rows.validate(full=True)
    few = list(ARROW[table].names[1:4])
    assert build_table(steps, table, few).equals(rows.select(few))


def test_no_steps_give_no_rows() -> None:
    assert build_table([], Table.LOGS).num_rows == 0


def test_logs_are_those_of_applied_blocks(chain: ChainSimulator, steps: list[StepRow]) -> None:
    rows = build_table(steps, Table.LOGS)
    assert read_logs(rows) == list_expected(chain)
    heads = [int.from_bytes(row["address"][:8], "big", signed=True) for row in rows.to_pylist()]
    assert rows["address_head"].to_pylist() == heads


def test_changes_have_undone_logs_and_a_row_per_step(chain: ChainSimulator, steps: list[StepRow]) -> None:
    rows = build_table(steps, CHANGES).to_pylist()
    undone = [row for row in rows if row["step"] == Step.UNDO and row["log_index"] is not None]
    assert len(undone) == len(chain.head.logs)
    assert [row["sequence"] for row in rows if row["log_index"] is None] == [1, 2, 3, 4, 5, 6, 7]


def test_bytes_of_receipts_and_transactions_are_exact(chain: ChainSimulator, steps: list[StepRow]) -> None:
    receipts = build_table(steps, Table.RECEIPTS).to_pylist()
    assert [tuple(one["raw"] for one in row["receipts"]) for row in receipts] == [
        block.raw.receipts for block in chain.canonical[1:]
    ]
    transactions = build_table(steps, Table.TRANSACTIONS).to_pylist()
    assert [row["raw"] for row in transactions] == [
        raw for block in chain.canonical[1:] for raw in block.raw.transactions or ()
    ]


def test_filter_keeps_what_the_definition_keeps(chain: ChainSimulator, steps: list[StepRow]) -> None:
    rows = build_table(steps, Table.LOGS)
    logs = list_expected(chain)
    first = next(log for _, _, log in logs if len(log.topics) > 1)
    filters = [
        LogFilter(frozenset({first.address})),
        LogFilter(topics=(frozenset({first.topics[0]}),)),
        LogFilter(topics=(None, frozenset({first.topics[1]}))),
        LogFilter(topics=(None, None)),
        LogFilter(frozenset({first.address, bytes(20)}), (frozenset({first.topics[0]}), None)),
        LogFilter(frozenset({bytes(20)})),
    ]
    for wanted in filters:
        assert read_logs(select_logs(rows, wanted)) == [row for row in logs if wanted.matches(row[2])], wanted

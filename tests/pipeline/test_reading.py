"""What a worker fetches for a task."""

from pathlib import Path

import pytest

from proofcast.chain.io.recorded import write_blocks
from proofcast.chain.segment import Segment
from proofcast.chain.trust import Trust
from proofcast.pipeline.io.reading import RangeTask, list_steps
from proofcast.pipeline.options import parse_options
from proofcast.testing.chain import ChainSimulator

SEED = 3


@pytest.mark.parametrize(
    ("options", "has_bodies"), [({}, True), ({"bodies": "true"}, True), ({"bodies": "false"}, False)]
)
def test_transactions_are_fetched_where_somebody_keeps_them(
    options: dict[str, str], has_bodies: bool, tmp_path: Path
) -> None:
    chain = ChainSimulator(SEED)
    chain.mine(3)
    blocks = chain.canonical[1:]
    write_blocks(tmp_path, chain.chain_id, [block.raw for block in blocks])
    segment = Segment(1, 3, chain.canonical[0].hash, blocks[-1].hash, Trust.LINKED)
    steps = list_steps(RangeTask(segment), parse_options({"source": str(tmp_path), "table": "tasks", **options}))
    raw = [step.block.raw for step in steps if step.block]
    assert [one.transactions is not None for one in raw] == [has_bodies] * 3
    assert [one.receipts for one in raw] == [block.raw.receipts for block in blocks]

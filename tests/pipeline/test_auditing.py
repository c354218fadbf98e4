"""A stored block that no longer says what its bytes say is a fault; no Spark is needed to find it."""

from dataclasses import replace

import pytest

from proofcast.chain.profile import get_profile
from proofcast.chain.verify import verify_block
from proofcast.pipeline.auditing import StoredBlock, check_stored
from proofcast.pipeline.rows import BLOCK_VALUES
from proofcast.testing.chain import ChainSimulator

SEED = 14


@pytest.fixture(scope="module")
def stored() -> StoredBlock:
    chain = ChainSimulator(SEED)
    (block,) = chain.mine()
    verified = verify_block(block.raw, get_profile(chain.chain_id))
    facts = {name: get(verified) for name, get in BLOCK_VALUES.items()}
    return StoredBlock(0, 1, block.hash, chain.chain_id, list(block.raw.receipts or ()), facts)


@pytest.mark.parametrize("name", [name for name in BLOCK_VALUES if name != "header"])
def test_column_that_differs_from_the_bytes_is_named(stored: StoredBlock, name: str) -> None:
    fault = check_stored(replace(stored, facts=stored.facts | {name: 1})).to_pylist()[0]["fault"]
    assert f"the column `{name}` says `1`" in fault


def test_changed_bytes_are_refused(stored: StoredBlock) -> None:
    for changed in (
        replace(stored, raws=(stored.raws or [])[1:]),
        replace(stored, raws=None),
        replace(stored, facts=stored.facts | {"header": b""}),
        replace(stored, block_hash=bytes(32)),
    ):
        assert check_stored(changed).to_pylist()[0]["fault"], changed


def test_true_block_has_no_fault_and_a_row_per_log(stored: StoredBlock) -> None:
    block, *logs = check_stored(stored).to_pylist()
    assert block["fault"] is None
    assert [log["log_index"] for log in logs] == list(range(len(logs)))
    assert len(logs) == stored.facts["log_count"]

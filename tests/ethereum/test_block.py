"""Recorded files."""

from collections.abc import Sequence

import pytest

from proofcast.errors import InvalidInput
from proofcast.ethereum import rlp
from proofcast.ethereum.block import RawBlock, encode_recorded, parse_recorded
from proofcast.testing.ethereum import Recorded

HEADER = rlp.encode([b"h"])


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "the data ends"),
        (rlp.encode([[b"h"], []]), "`2` items instead of `3`"),
        (rlp.encode([b"h", [], []]), "a string stands where a list belongs at byte `1`"),
        (rlp.encode([[b"h"], [[b"tx"]], []]), "a list stands where a string belongs"),
    ],
)
def test_other_file_is_refused(data: bytes, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        parse_recorded(data)


@pytest.mark.parametrize(
    "block",
    [
        RawBlock(HEADER, (), ()),
        RawBlock(HEADER, (b"tx",), (b"receipt",)),
        RawBlock(HEADER, None, (b"receipt",)),
        RawBlock(HEADER, (b"tx",), None),
    ],
)
def test_what_was_left_out_is_told_from_what_is_empty(block: RawBlock) -> None:
    assert parse_recorded(encode_recorded(block)) == block


@pytest.mark.needs("data")
def test_recorded_blocks_have_the_parts_their_index_names(recorded: Sequence[Recorded]) -> None:
    for block in recorded:
        assert (block.raw.transactions is not None) == block.facts["has_txs"]
        assert len(block.receipts) == block.facts["receipts"]

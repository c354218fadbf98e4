"""Roots and proofs of lists."""

from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.ethereum import rlp, trie
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.trie import build_proof, compute_ordered_root, verify_proof
from proofcast.testing.ethereum import Recorded

ITEMS = [bytes((number % 256,)) * (number % 70) for number in range(300)]
"""Some stand in their parents, some do not; keys of one and of two bytes and of three."""
ROOT = compute_ordered_root(ITEMS)
PROOF = build_proof(ITEMS, 200)


def refuse(root: bytes, index: int, proof: Sequence[bytes], fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        verify_proof(root, index, proof)


def test_proof_of_another_item_is_refused() -> None:
    refuse(ROOT, 201, PROOF, "the proof")


def test_proof_of_another_list_is_refused() -> None:
    refuse(compute_ordered_root(ITEMS[:-1]), 200, PROOF, f"instead of `{compute_ordered_root(ITEMS[:-1]).hex()}`")


def test_changed_item_is_refused() -> None:
    refuse(ROOT, 200, [*PROOF[:-1], PROOF[-1][:-1] + b"\0"], "a node of the proof has the hash")


def test_short_proof_is_refused() -> None:
    refuse(ROOT, 200, PROOF[:-1], "ends before the node")
    refuse(ROOT, 200, [], f"ends before the node `{ROOT.hex()}`")


def test_long_proof_is_refused() -> None:
    refuse(ROOT, 200, [*PROOF, PROOF[-1]], "`1` nodes too many")


@pytest.mark.parametrize("index", [300, 10_000])
def test_item_beyond_the_list_has_no_proof(index: int) -> None:
    with pytest.raises(InvalidRequest, match=f"no item `{index}` of `300`"):
        build_proof(ITEMS, index)
    refuse(ROOT, index, PROOF, "the proof")


@pytest.mark.parametrize(
    "node",
    [
        b"\x80",
        rlp.encode([b"\x20"]),
        rlp.encode([[], b"x"]),
        rlp.encode([b"", b"x"]),
        rlp.encode([b"\x40", b"x"]),
        rlp.encode([b"\x21", b"x"]),
        rlp.encode([trie.encode_path(trie.compute_key(0), is_leaf=True), [b"x"]]),
    ],
)
def test_what_is_no_node_is_refused(node: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        verify_proof(keccak256(node), 0, [node])
    assert refused.value.reason in (Reason.MALFORMED, Reason.DISAGREES)


def test_path_beyond_the_key_is_refused() -> None:
    branch = rlp.encode([*([b""] * 8), [b" ", b"item"], *([b""] * 8)])
    key = trie.compute_key(0)
    assert key == b"\x08\x00"
    refuse(keccak256(branch), 0, [branch], "leads along `` instead of `00`")


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=300), st.data())
def test_every_item_has_a_proof(items: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(min_value=0, max_value=len(items) - 1))
    assert verify_proof(compute_ordered_root(items), index, build_proof(items, index)) == items[index]


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20), st.data())
def test_damaged_proof_never_proves_another_item(items: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(min_value=0, max_value=len(items) - 1))
    proof = list(build_proof(items, index))
    at = data.draw(st.integers(min_value=0, max_value=len(proof) - 1))
    proof[at] = data.draw(st.binary(max_size=60))
    with suppress(InvalidInput):
        assert verify_proof(compute_ordered_root(items), index, proof) == items[index]


def test_empty_list_has_the_empty_root() -> None:
    assert compute_ordered_root([]).hex() == "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"


@pytest.mark.needs("data")
@pytest.mark.slow
def test_recorded_blocks_have_their_headers_roots(recorded: Sequence[Recorded]) -> None:
    for block in recorded:
        assert compute_ordered_root(block.receipts) == block.header.receipts_root
        if block.raw.transactions is not None:
            assert compute_ordered_root(block.raw.transactions) == block.header.transactions_root


@pytest.mark.needs("data")
def test_receipts_of_a_real_block_are_proved(big_block: Recorded) -> None:
    for index in (0, 1, 127, 128, len(big_block.receipts) - 1):
        proof = build_proof(big_block.receipts, index)
        assert verify_proof(big_block.header.receipts_root, index, proof) == big_block.receipts[index]

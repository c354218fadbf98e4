"""Evidence: whatever was changed in it is refused; what was not is proven offline."""

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.chain.evidence import Evidence, build_evidence, encode_evidence, parse_evidence, verify_evidence
from proofcast.chain.profile import get_profile
from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedBlock, VerifiedHeader, verify_block, verify_header
from proofcast.errors import InvalidInput, InvalidRequest
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.keccak import keccak256
from proofcast.testing.chain import ChainSimulator, SimulatedBlock

SEED = 31
PROFILE = get_profile(31_337)


def build_chain() -> ChainSimulator:
    chain = ChainSimulator(SEED)
    chain.mine(4)
    return chain


CHAIN = build_chain()
BLOCK = max(CHAIN.canonical[2:4], key=lambda block: len(block.logs))
TRUSTED = CHAIN.head.hash


def verify(block: SimulatedBlock) -> VerifiedBlock:
    return verify_block(block.raw, PROFILE)


def build_path(block: SimulatedBlock) -> list[VerifiedHeader]:
    return [verify_header(later.raw.header) for later in CHAIN.canonical[block.header.number + 1 :]]


def build(log_index: int) -> Evidence:
    return build_evidence(verify(BLOCK), log_index, build_path(BLOCK))


# --- refusals


@pytest.mark.slow
def test_every_flipped_byte_is_refused() -> None:
    data = encode_evidence(build(len(BLOCK.logs) // 2))
    accepted = [position for position in range(len(data)) if is_accepted(flip(data, position))]
    assert accepted == []


def flip(data: bytes, position: int) -> bytes:
    """Another bit from byte to byte."""
    return data[:position] + bytes((data[position] ^ 1 << position % 8,)) + data[position + 1 :]


def is_accepted(data: bytes) -> bool:
    try:
        verify_evidence(data, TRUSTED)
    except InvalidInput:
        return False
    return True


@given(st.binary(max_size=200), st.integers(0, 10**6))
def test_whatever_is_inserted_is_refused(inserted: bytes, at: int) -> None:
    data = encode_evidence(build(0))
    at %= len(data)
    changed = data[:at] + inserted + data[at + len(inserted) :]
    assert is_accepted(changed) == (changed == data)


@pytest.mark.parametrize("length", range(0, 600, 37))
def test_truncated_evidence_is_refused(length: int) -> None:
    with pytest.raises(InvalidInput):
        verify_evidence(encode_evidence(build(0))[:length], TRUSTED)


def test_other_trusted_hash_is_refused_with_both_hashes() -> None:
    with pytest.raises(InvalidInput, match="the hash to which the evidence leads is") as refused:
        verify_evidence(encode_evidence(build(0)), bytes(32))
    assert TRUSTED.hex() in str(refused.value)
    assert bytes(32).hex() in str(refused.value)


def test_other_log_of_the_same_receipt_is_refused() -> None:
    index = next(at for at, receipt in enumerate(BLOCK.receipts) if len(receipt.logs) > 1)
    evidence = build(sum(len(receipt.logs) for receipt in BLOCK.receipts[:index]))
    with pytest.raises(InvalidInput, match="the hash of log `1` is"):
        verify_evidence(encode_evidence(replace(evidence, log_position=1)), TRUSTED)


def test_position_without_a_log_is_refused() -> None:
    with pytest.raises(InvalidInput, match="so none at position `99`"):
        verify_evidence(encode_evidence(replace(build(0), log_position=99)), TRUSTED)


def test_path_with_a_gap_is_refused() -> None:
    evidence = build(0)
    headers = (evidence.headers[0], CHAIN.canonical[1].raw.header, *evidence.headers[1:])
    with pytest.raises(InvalidInput, match="names the parent"):
        verify_evidence(encode_evidence(replace(evidence, headers=headers)), TRUSTED)


def test_no_header_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no header"):
        verify_evidence(encode_evidence(replace(build(0), headers=())), TRUSTED)


def test_proof_with_a_node_too_many_is_refused() -> None:
    evidence = build(0)
    proof = (*evidence.receipt_proof, evidence.receipt_proof[-1])
    with pytest.raises(InvalidInput, match="too many"):
        verify_evidence(encode_evidence(replace(evidence, receipt_proof=proof)), TRUSTED)


def test_log_that_the_block_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="the block has no log `999`"):
        build(999)


def test_block_without_receipts_gives_no_evidence() -> None:
    with pytest.raises(InvalidRequest, match="came without receipts"):
        build_evidence(verify_block(RawBlock(BLOCK.raw.header, None, None), PROFILE), 0)


# --- what is proven


def test_every_log_is_proven() -> None:
    for log_index, log in enumerate(BLOCK.logs):
        proven = verify_evidence(encode_evidence(build(log_index)), TRUSTED)
        assert (proven.log, proven.header, proven.block_hash) == (log, BLOCK.header, BLOCK.hash)
        assert BLOCK.receipts[proven.transaction_index].logs[proven.log_position] == log


def test_event_identity_is_complete() -> None:
    """O4 of the notes: Decentagram's record of an event is its block's number and the bytes, nothing else."""
    proven = verify_evidence(encode_evidence(build(0)), TRUSTED)
    assert BLOCK.raw.transactions
    assert proven.block_hash == BLOCK.hash
    assert proven.header.number == BLOCK.header.number
    assert proven.transaction_hash == keccak256(BLOCK.raw.transactions[0])
    assert (proven.transaction_index, proven.log_position) == (0, 0)
    assert proven.log.address == BLOCK.logs[0].address


def test_evidence_without_transactions_proves_no_transaction_hash() -> None:
    block = verify_block(RawBlock(BLOCK.raw.header, None, BLOCK.raw.receipts), PROFILE, trust=Trust.AGREED)
    proven = verify_evidence(encode_evidence(build_evidence(block, 0)), BLOCK.hash)
    assert proven.transaction_hash is None
    assert proven.claimed_trust is Trust.AGREED


def test_encoding_is_canonical() -> None:
    evidence = build(1)
    assert parse_evidence(encode_evidence(evidence)) == evidence


def test_verifier_needs_neither_keys_nor_http() -> None:
    forbidden = ("eth_account", "eth_keys", "httpx", "http.client", "ssl", "sqlite3")
    code = f"import sys, proofcast.chain.evidence; sys.exit(any(name in sys.modules for name in {forbidden}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

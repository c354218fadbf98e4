"""Witnesses: who has signed one chain signs no other, and has the proof."""

from dataclasses import replace

import pytest
from nacl.signing import SigningKey

from proofcast.errors import InvalidInput, Misbehaviour, Unavailable
from proofcast.groups.attestation import GENESIS
from proofcast.groups.proof import EMPTY_ROOT, Checkpoint, Lie, verify_proof
from proofcast.groups.witness import Quorum, Signed, Witness

SERVER = SigningKey(b"s" * 32)
SERVER_KEY = bytes(SERVER.verify_key)


def make_chain(length: int) -> list[Signed]:
    chain: list[Signed] = []
    for epoch in range(1, length + 1):
        previous = chain[-1][0].compute_digest() if chain else GENESIS
        chain.append(sign(Checkpoint(SERVER_KEY, epoch, epoch << 20, epoch << 20, previous, EMPTY_ROOT)))
    return chain


def sign(checkpoint: Checkpoint) -> Signed:
    return checkpoint, SERVER.sign(checkpoint.get_signed_bytes()).signature


def make_witness(seen: list[Signed]) -> Witness:
    witness = Witness(SigningKey(b"w" * 32), SERVER_KEY)
    for signed in seen:
        witness.cosign(signed)
    return witness


@pytest.mark.parametrize("at", [1, 2], ids=["same epoch", "next epoch"])
def test_second_chain_is_a_proof(at: int) -> None:
    chain = make_chain(3)
    forked = sign(replace(chain[at][0], previous=bytes(31) + b"\1"))
    with pytest.raises(Misbehaviour) as raised:
        make_witness(chain[:2]).cosign(forked)
    assert verify_proof(raised.value.evidence, SERVER_KEY).lie is Lie.FORK


def test_gap_is_refused_without_accusation() -> None:
    chain = make_chain(4)
    with pytest.raises(InvalidInput, match="does not follow"):
        make_witness(chain[:2]).cosign(chain[3])


def test_unsigned_checkpoint_is_refused() -> None:
    chain = make_chain(1)
    with pytest.raises(InvalidInput, match="not signed"):
        make_witness([]).cosign((chain[0][0], bytes(64)))


def test_too_few_cosignatures_are_refused() -> None:
    (signed,) = make_chain(1)
    witness = make_witness([])
    key, cosignature = bytes(witness.key.verify_key), witness.cosign(signed)
    quorum = Quorum((key, b"o" * 32), 1)
    quorum.verify(signed[0], {key: cosignature})
    for cosignatures in ({}, {key: bytes(64)}, {SERVER_KEY: signed[1]}):
        with pytest.raises(Unavailable, match="`0` witnesses"):
            quorum.verify(signed[0], cosignatures)
    with pytest.raises(Unavailable, match="`1` witnesses"):
        Quorum((key, b"o" * 32), 2).verify(signed[0], {key: cosignature})


def test_last_checkpoint_may_be_asked_for_again() -> None:
    chain = make_chain(2)
    witness = make_witness(chain)
    assert witness.cosign(chain[1]) == witness.cosign(chain[1])

"""From what a client and its peer hold to a proof file that convinces a stranger.

Nothing here decides whether the server lied: every way to combine two exhibits is tried, and a proof is what
`verify_proof` accepts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from proofcast.groups.proof import MAGIC, Checkpoint, Exhibit, Lie, Proof, Refused, verify_proof


def encode_exhibit(exhibit: Exhibit) -> bytes:
    path = b"".join(bytes([bit]) + sibling for bit, sibling in exhibit.path)
    rows = b"".join(sequence.to_bytes(8, "big") + row_hash for sequence, row_hash in exhibit.rows)
    shown = [row.encode() for row in exhibit.shown]
    head = exhibit.checkpoint.encode() + exhibit.signature + exhibit.leaf.encode()
    head += len(exhibit.path).to_bytes(2, "big") + path + len(exhibit.rows).to_bytes(4, "big") + rows
    return head + len(shown).to_bytes(2, "big") + b"".join(len(row).to_bytes(4, "big") + row for row in shown)


def encode_proof(proof: Proof) -> bytes:
    checkpoints = b"".join(checkpoint.encode() + signature for checkpoint, signature in proof.checkpoints)
    exhibits = b"".join(map(encode_exhibit, proof.exhibits))
    data = MAGIC + bytes([proof.lie, len(proof.checkpoints)]) + checkpoints + bytes([len(proof.exhibits)]) + exhibits
    data += len(proof.opening).to_bytes(4, "big") + proof.opening
    return data + sha256(data).digest()


def find_proof(server_key: bytes, exhibits: Sequence[Exhibit], blinds: Sequence[bytes] = ()) -> bytes | None:
    """A proof file from these exhibits, or None where they contradict each other in nothing.

    `blinds` are those of names in the rows shown, where the holder of the row has given them.
    """
    for candidate in iterate_candidates(exhibits, blinds):
        data = encode_proof(candidate)
        try:
            verify_proof(data, server_key)
        except Refused:
            continue
        return data
    return None


def iterate_candidates(exhibits: Sequence[Exhibit], blinds: Sequence[bytes]) -> Iterator[Proof]:
    for exhibit in exhibits:
        yield Proof(Lie.MALFORMED, (), (exhibit,), b"")
    for first in exhibits:
        for second in exhibits:
            if first is not second:
                yield from iterate_pairs(first, second, blinds)


def iterate_pairs(first: Exhibit, second: Exhibit, blinds: Sequence[bytes]) -> Iterator[Proof]:
    """What the verifier must not see is left out: rows where none are needed."""
    yield make_fork((first.checkpoint, first.signature), (second.checkpoint, second.signature))
    yield Proof(Lie.OVERLAP, (), (conceal(first), conceal(second)), b"")
    yield Proof(Lie.CONFLICT, (), (first, second), b"")
    yield Proof(Lie.SPLIT, (), (first, second), b"")
    for blind in blinds:
        yield Proof(Lie.MISSING, (), (first, conceal(second)), blind)
        yield Proof(Lie.INJECTED, (), (first, conceal(second)), blind)


def make_fork(first: tuple[Checkpoint, bytes], second: tuple[Checkpoint, bytes]) -> Proof:
    return Proof(Lie.FORK, (first, second), (), b"")


def conceal(exhibit: Exhibit) -> Exhibit:
    return replace(exhibit, shown=())

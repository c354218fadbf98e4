"""What the server says about one client in one epoch: a leaf, its path, the signed checkpoint.

`close_epoch` is the server's side: from every client's rows to leaves, tree and checkpoint, without randomness, so that
an epoch closed again after a crash has the same bytes. `Attestation.verify` is the
client's side. The formats and hashes themselves are those of `proofcast.groups.proof`.

    attestation = checkpoint 120 | signature 64 | leaf 113 | depth u16 | depth x (bit u8 | sibling 32)
"""

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from proofcast.errors import InvalidInput, Reason
from proofcast.groups import proof
from proofcast.groups.prefix_tree import PrefixTree, encode_path
from proofcast.groups.proof import INDEX_BITS, Checkpoint, Kind, Leaf, Row
from proofcast.groups.wire import WireReader

PATH_NODES_MAX = 256
GENESIS = bytes(32)
"""What the first checkpoint names as its predecessor."""

LeafId = tuple[Kind, bytes]
"""Kind and client."""
Rows = tuple[tuple[int, bytes], ...]
"""(sequence, row hash), in order."""


@dataclass(frozen=True, slots=True)
class Attestation:
    checkpoint: Checkpoint
    signature: bytes
    leaf: Leaf
    path: tuple[tuple[int, bytes], ...]

    def encode(self) -> bytes:
        return self.checkpoint.encode() + self.signature + self.leaf.encode() + encode_path(self.path)

    def verify(self, server_key: bytes, leaf_id: LeafId, prev: int, rows: Sequence[tuple[int, bytes]]) -> None:
        """Raise `InvalidInput` unless all of it holds.

        - The leaf is about this kind and client, and begins where the one before ended.
        - Its rows are those of the messages at hand.
        - Range, order and log range are well formed.
        - The leaf is in the tree, and the server's key has signed its root.
        """
        if (self.leaf.kind, self.leaf.client) != leaf_id:
            raise disagree(f"the attestation is about `{self.leaf.client.hex()}`, not `{leaf_id[1].hex()}`")
        if self.leaf.prev != prev:
            raise disagree(f"the attestation begins at `{self.leaf.prev}` where the one before ended at `{prev}`")
        if self.checkpoint.server_key != server_key:
            raise disagree(f"the checkpoint names the key `{self.checkpoint.server_key.hex()}`, not the server's")
        exhibit = self.make_exhibit(tuple(rows), ())
        fault = proof.find_fault(exhibit)
        if fault is not None:
            raise disagree(f"the attestation of epoch `{self.checkpoint.epoch}` is malformed: its {fault}")
        try:
            proof.verify_exhibit(exhibit)
            proof.verify_signature(self.checkpoint, self.signature)
        except proof.Refused as error:
            raise disagree(f"the attestation of epoch `{self.checkpoint.epoch}` does not hold: {error}") from None

    def make_exhibit(self, rows: Rows, shown: tuple[Row, ...]) -> proof.Exhibit:
        return proof.Exhibit(self.checkpoint, self.signature, self.leaf, self.path, rows, shown)


def disagree(message: str) -> InvalidInput:
    return InvalidInput(Reason.DISAGREES, message, hint="the server lies; it is kept as evidence")


def parse_attestation(reader: WireReader) -> Attestation:
    checkpoint = Checkpoint(*proof.CHECKPOINT.unpack(reader.take(proof.CHECKPOINT.size)))
    signature = reader.take(64)
    leaf = Leaf(*proof.LEAF.unpack(reader.take(proof.LEAF.size)))
    path = tuple((reader.number(1), reader.take(32)) for _ in range(reader.count(2, PATH_NODES_MAX)))
    return Attestation(checkpoint, signature, leaf, path)


def compute_leaf_salt(secret: bytes, epoch: int, leaf_id: LeafId) -> bytes:
    """The same salt whenever the epoch is closed again: an honest server never signs two roots."""
    return hmac.digest(secret, b"pcg1/slt" + epoch.to_bytes(8, "big") + bytes([leaf_id[0]]) + leaf_id[1], "sha256")


@dataclass(frozen=True, slots=True)
class EpochClose:
    """What a server is about to sign; durable before it is signed."""

    checkpoint: Checkpoint
    leaves: Mapping[LeafId, Leaf]
    tree: PrefixTree

    def make_attestation(self, leaf_id: LeafId, signature: bytes) -> Attestation:
        leaf = self.leaves[leaf_id]
        return Attestation(self.checkpoint, signature, leaf, self.tree.get_path(leaf.compute_position()))


def close_epoch(
    server_key: bytes,
    secret: bytes,
    epoch: int,
    message_count: int,
    previous: bytes,
    rows: Mapping[LeafId, Sequence[tuple[int, bytes]]],
    get_prev: Callable[[LeafId], int],
) -> EpochClose:
    """Leaves, tree and checkpoint of an epoch.

    `rows` has an entry, empty perhaps, for every client and kind that gets a leaf; `get_prev` says where its last one
    ended. `message_count` counts the frame's messages, `previous` is the digest of the last checkpoint.
    """
    end = (epoch + 1) << INDEX_BITS
    leaves = {
        leaf_id: Leaf(
            leaf_id[0],
            leaf_id[1],
            get_prev(leaf_id),
            end,
            proof.compute_rows_digest(list(own)),
            compute_leaf_salt(secret, epoch, leaf_id),
        )
        for leaf_id, own in rows.items()
    }
    start = epoch << INDEX_BITS
    unsigned = Checkpoint(server_key, epoch, start, start + message_count, previous, proof.EMPTY_ROOT)
    tree = build_tree(leaves.values(), unsigned)
    checkpoint = Checkpoint(server_key, epoch, start, start + message_count, previous, tree.root)
    return EpochClose(checkpoint, leaves, tree)


def build_tree(leaves: Iterable[Leaf], checkpoint: Checkpoint) -> PrefixTree:
    """A leaf's hash closes over the server's key and the epoch, not over the root it is below."""
    return PrefixTree({leaf.compute_position(): leaf.compute_hash(checkpoint) for leaf in leaves})

"""What is signed about a frame: the close of its epoch.

The close record holds what must be known to sign the epoch, and to make its packets, again bit by bit. It is durable
before anything is signed, so a crash never makes an honest server sign two roots.

    close record = checkpoint 120 | count u32 | count x leaf 113 | count u32 | count x series digest 32
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from struct import Struct

from proofcast.groups.attestation import GENESIS, Attestation, LeafId, build_tree, compute_leaf_salt
from proofcast.groups.kernel import compute_frame_digests
from proofcast.groups.proof import CHECKPOINT, EMPTY_ROOT, INDEX_BITS, LEAF, Checkpoint, Kind, Leaf
from proofcast.groups.wire import WireReader

COUNT = Struct(">I")
ATTESTED = Struct(">B32sH")


@dataclass(frozen=True, slots=True)
class CloseRecord:
    """All that an epoch's packets need besides its frame."""

    checkpoint: Checkpoint
    leaves: tuple[Leaf, ...]
    digests: tuple[bytes, ...]
    """Of the frame's series."""

    def encode(self) -> bytes:
        leaves = [leaf.encode() for leaf in self.leaves]
        counts = COUNT.pack(len(leaves)), COUNT.pack(len(self.digests))
        return b"".join([self.checkpoint.encode(), counts[0], *leaves, counts[1], *self.digests])

    def make_attestations(self, signature: bytes, is_wanted: Callable[[bytes], bool]) -> Iterator[tuple[LeafId, bytes]]:
        """The attestations of the clients wanted, encoded."""
        tree = build_tree(self.leaves, self.checkpoint)
        for leaf in self.leaves:
            if is_wanted(leaf.client):
                path = tree.get_path(leaf.compute_position())
                yield (Kind(leaf.kind), leaf.client), Attestation(self.checkpoint, signature, leaf, path).encode()


def parse_close_record(data: bytes) -> CloseRecord:
    """A record of our own log."""
    reader = WireReader(data, "the close record")
    checkpoint = Checkpoint(*CHECKPOINT.unpack(reader.take(CHECKPOINT.size)))
    leaves = reader.take(reader.number(4) * LEAF.size)
    digests = tuple(reader.take(32) for _ in range(reader.number(4)))
    reader.finish()
    return CloseRecord(checkpoint, tuple(Leaf(*fields) for fields in LEAF.iter_unpack(leaves)), digests)


@dataclass(slots=True)
class Attestor:
    """Closes epoch after epoch; `apply_record` is how it learns of those that are closed already."""

    server_key: bytes
    secret: bytes
    previous: bytes = GENESIS
    """Digest of the last checkpoint."""
    ends: dict[LeafId, int] = field(default_factory=dict)
    """Where the last leaf of each client and kind ended."""

    def close_frame(self, epoch: int, body: bytes) -> CloseRecord:
        """What is to be signed about a durable frame; the same bytes whenever it is done again."""
        frame, start = compute_frame_digests(epoch, body), epoch << INDEX_BITS
        leaves = tuple(self.make_leaf(epoch, leaf_id, digest) for leaf_id, digest in frame.leaves)
        end = start + frame.messages
        unsigned = Checkpoint(self.server_key, epoch, start, end, self.previous, EMPTY_ROOT)
        checkpoint = replace(unsigned, root=build_tree(leaves, unsigned).root)
        return CloseRecord(checkpoint, leaves, tuple(frame.digests))

    def make_leaf(self, epoch: int, leaf_id: LeafId, rows_digest: bytes) -> Leaf:
        salt = compute_leaf_salt(self.secret, epoch, leaf_id)
        return Leaf(*leaf_id, self.ends.get(leaf_id, 0), epoch + 1 << INDEX_BITS, rows_digest, salt)

    def apply_record(self, record: CloseRecord) -> None:
        self.previous = record.checkpoint.compute_digest()
        for leaf in record.leaves:
            self.ends[Kind(leaf.kind), leaf.client] = leaf.next


@dataclass(frozen=True, slots=True)
class ShardClose:
    """What a shard is told of a signed epoch.

    count u32 | count x (kind u8 | client 32 | length u16 | attestation) | digests of the frame's series, 32 each
    """

    attestations: Sequence[tuple[LeafId, bytes]]
    """Of the shard's clients, encoded."""
    digests: Sequence[bytes]

    def encode(self) -> bytes:
        parts = [COUNT.pack(len(self.attestations))]
        for (kind, client), attestation in self.attestations:
            parts += (ATTESTED.pack(kind, client, len(attestation)), attestation)
        return b"".join([*parts, *self.digests])


def parse_shard_close(data: bytes) -> ShardClose:
    """From our own attestor."""
    (count,), at = COUNT.unpack_from(data), COUNT.size
    attestations = []
    for _ in range(count):
        kind, client, length = ATTESTED.unpack_from(data, at)
        at += ATTESTED.size + length
        attestations.append(((Kind(kind), client), data[at - length : at]))
    return ShardClose(attestations, [data[place : place + 32] for place in range(at, len(data), 32)])

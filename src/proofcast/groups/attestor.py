"""What is signed about a frame: the close of its epoch.

The close record holds what must be known to sign the epoch, and to make its packets, again bit by bit. It is durable
before anything is signed, so a crash never makes an honest server sign two roots.

    close record = checkpoint 120 | count u32 | count x leaf 113 | count u32 | count x series digest 32
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from proofcast.groups.attestation import GENESIS
from proofcast.groups.epoch import DIGEST_BYTES
from proofcast.groups.kernel import hang_leaves, make_leaves
from proofcast.groups.proof import CHECKPOINT, INDEX_BITS, LEAF, Checkpoint
from proofcast.groups.shard_close import COUNT, encode_shard_closes
from proofcast.groups.wire import WireReader

NAME_BYTES = 33
"""Kind and client, with which a leaf begins."""


@dataclass(frozen=True, slots=True)
class CloseRecord:
    """All that an epoch's packets need besides its frame."""

    checkpoint: Checkpoint
    leaves: bytes
    """Encoded."""
    digests: bytes
    """Of the frame's series."""
    paths: Sequence[bytes] = field(default=(), compare=False)
    """Of the leaves, where the record was just made; they follow from it."""

    def encode(self) -> bytes:
        counts = (
            COUNT.pack(len(part) // size) for part, size in ((self.leaves, LEAF.size), (self.digests, DIGEST_BYTES))
        )
        return b"".join([self.checkpoint.encode(), next(counts), self.leaves, next(counts), self.digests])

    def get_names(self) -> list[bytes]:
        """Kind and client of every leaf."""
        return [self.leaves[at : at + NAME_BYTES] for at in range(0, len(self.leaves), LEAF.size)]

    def make_shard_closes(self, signature: bytes, shards: int) -> list[bytes]:
        checkpoint = self.checkpoint
        paths = self.paths or hang_leaves(checkpoint.server_key, checkpoint.epoch, self.leaves)[1]
        return encode_shard_closes(checkpoint.encode() + signature, self.leaves, paths, self.digests, shards)


def parse_close_record(data: bytes) -> CloseRecord:
    """A record of our own log."""
    reader = WireReader(data, "the close record")
    checkpoint = Checkpoint(*CHECKPOINT.unpack(reader.take(CHECKPOINT.size)))
    leaves = reader.take(reader.number(COUNT.size) * LEAF.size)
    digests = reader.take(reader.number(COUNT.size) * DIGEST_BYTES)
    reader.finish()
    return CloseRecord(checkpoint, leaves, digests)


@dataclass(slots=True)
class Attestor:
    """Closes epoch after epoch; `apply_record` is how it learns of those that are closed already."""

    server_key: bytes
    secret: bytes
    previous: bytes = GENESIS
    """Digest of the last checkpoint."""
    ends: dict[bytes, int] = field(default_factory=dict)
    """Where the last leaf of each kind and client ended."""

    def close_frame(self, epoch: int, body: bytes) -> CloseRecord:
        """What is to be signed about a durable frame; the same bytes whenever it is done again."""
        frame, start = make_leaves(epoch, body, self.secret, self.ends), epoch << INDEX_BITS
        root, paths = hang_leaves(self.server_key, epoch, frame.leaves)
        checkpoint = Checkpoint(self.server_key, epoch, start, start + frame.messages, self.previous, root)
        return CloseRecord(checkpoint, frame.leaves, frame.digests, paths)

    def apply_record(self, record: CloseRecord) -> None:
        """All leaves of an epoch end where the next one begins."""
        self.previous = record.checkpoint.compute_digest()
        self.ends |= dict.fromkeys(record.get_names(), record.checkpoint.epoch + 1 << INDEX_BITS)

"""Does this file prove that a group server lied? Standalone: the standard library and PyNaCl, nothing else.

What a server signs. Time is cut into epochs; sequence = epoch << 20 | index. At the end of an epoch the server signs
one checkpoint: the root of a tree of leaves, and the digest of the checkpoint before. A leaf says about one client and
one kind (SENT or RECEIVED by it): in the range [prev, next) of the total order there are these
rows and no others. A row describes one message: its sequence, its place in its series, sender, common ciphertext, and
for each recipient a name and a ciphertext, everything as digests. Names are blinded, so that a row shows only the names
whose blinds are given. A leaf's place in the tree follows from its client's hash: a root holds at most one leaf per
client and kind.

What convicts it. An honest server derives every leaf from one log, so none of these can exist, whatever clients do:

  FORK       two checkpoints of one epoch, or a checkpoint that does not continue the one before
  OVERLAP    two leaves of one client and kind whose ranges overlap
  CONFLICT   two rows of one sequence that differ
  MISSING    a row that names a recipient whose RECEIVED leaf covers the sequence and lacks it
  INJECTED   a row that names a sender whose SENT leaf covers the sequence and lacks it
  SPLIT      two rows that show a series whose messages do not stand side by side
  MALFORMED  a leaf or row that breaks its format

`verify_proof` reads in that order: bytes, then signatures and hashes, then the one rule of the proof's kind.
"""

from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from itertools import pairwise
from struct import Struct

from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

MAGIC = b"pcgproof\x01"
INDEX_BITS = 20
"""A frame holds at most 2^20 messages."""
PROOF_BYTES_MAX = 64 * 2**20
ABSENT = bytes(32)
"""In the place of a ciphertext digest that the leaf's client is not to see."""
EMPTY_ROOT = sha256(b"pcg1/emp").digest()

CHECKPOINT = Struct(">32sQQQ32s32s")
LEAF = Struct(">B32sQQ32s32s")
ROW = Struct(">Q32sHH32s32sH")


class Refused(Exception):
    """The file proves nothing, for the reason given."""


class Kind(IntEnum):
    SENT = 0
    RECEIVED = 1


class Lie(IntEnum):
    FORK = 1
    OVERLAP = 2
    CONFLICT = 3
    MISSING = 4
    INJECTED = 5
    SPLIT = 6
    MALFORMED = 7


def require(condition: bool, why_not: str) -> None:
    if not condition:
        raise Refused(why_not)


# --- what the server signs


@dataclass(frozen=True, slots=True)
class Checkpoint:
    server_key: bytes
    epoch: int
    log_start: int
    """Sequence of the epoch's first message, `epoch << 20`."""
    log_end: int
    """One beyond its last message; equal to `log_start` in an empty epoch."""
    previous: bytes
    """Digest of the checkpoint before."""
    root: bytes

    def encode(self) -> bytes:
        return CHECKPOINT.pack(self.server_key, self.epoch, self.log_start, self.log_end, self.previous, self.root)

    def compute_digest(self) -> bytes:
        return sha256(b"pcg1/ckd" + self.encode()).digest()

    def get_signed_bytes(self) -> bytes:
        return b"pcg1/chk" + self.encode()


@dataclass(frozen=True, slots=True)
class Leaf:
    kind: int
    client: bytes
    prev: int
    next: int
    rows_digest: bytes
    salt: bytes

    def encode(self) -> bytes:
        return LEAF.pack(self.kind, self.client, self.prev, self.next, self.rows_digest, self.salt)

    def compute_hash(self, checkpoint: Checkpoint) -> bytes:
        return compute_leaf_hash(self.encode(), checkpoint.server_key, checkpoint.epoch)

    def compute_position(self) -> int:
        return int.from_bytes(sha256(b"pcg1/pos" + bytes([self.kind]) + self.client).digest(), "big")


def compute_leaf_hash(leaf: bytes, server_key: bytes, epoch: int) -> bytes:
    return sha256(b"\x00pcg1/lef" + server_key + epoch.to_bytes(8, "big") + leaf).digest()


@dataclass(frozen=True, slots=True)
class Row:
    sequence: int
    series: bytes
    index: int
    count: int
    sender: bytes
    common: bytes
    recipients: tuple[tuple[bytes, bytes], ...]
    """(blinded name, digest of that recipient's ciphertext or `ABSENT`), in the order of the recipients' ids."""

    def encode(self) -> bytes:
        head = ROW.pack(
            self.sequence, self.series, self.index, self.count, self.sender, self.common, len(self.recipients)
        )
        return head + b"".join(name + ciphertext for name, ciphertext in self.recipients)

    def compute_hash(self) -> bytes:
        return sha256(b"pcg1/row" + self.encode()).digest()

    @property
    def start(self) -> int:
        """Where the first message of its series stands."""
        return self.sequence - self.index


def compute_name(blind: bytes, client: bytes) -> bytes:
    return sha256(b"pcg1/who" + blind + client).digest()


def compute_rows_digest(rows: list[tuple[int, bytes]]) -> bytes:
    parts = (sequence.to_bytes(8, "big") + row_hash for sequence, row_hash in rows)
    return sha256(b"pcg1/rws" + len(rows).to_bytes(4, "big") + b"".join(parts)).digest()


def compute_root(leaf_hash: bytes, position: int, path: tuple[tuple[int, bytes], ...]) -> bytes:
    """From the leaf up. Each node says which bit of the position it decides, so one position leads to one leaf."""
    node, below = leaf_hash, 256
    for bit, sibling in path:
        require(bit < below, f"bit {bit} of the path is decided below bit {below}")
        left, right = (sibling, node) if position >> (255 - bit) & 1 else (node, sibling)
        node, below = sha256(b"\x01" + bytes([bit]) + left + right).digest(), bit
    return node


def verify_signature(checkpoint: Checkpoint, signature: bytes) -> None:
    try:
        VerifyKey(checkpoint.server_key).verify(checkpoint.get_signed_bytes(), signature)
    except (CryptoError, ValueError):
        raise Refused(f"the checkpoint of epoch {checkpoint.epoch} is not signed by the server") from None


# --- what a proof contains


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A leaf under its signed checkpoint, the list of its rows, and those rows that are shown."""

    checkpoint: Checkpoint
    signature: bytes
    leaf: Leaf
    path: tuple[tuple[int, bytes], ...]
    rows: tuple[tuple[int, bytes], ...]
    shown: tuple[Row, ...]

    def covers(self, sequence: int) -> bool:
        return self.leaf.prev <= sequence < self.leaf.next

    def lacks(self, sequence: int) -> bool:
        return self.covers(sequence) and sequence not in {listed for listed, _ in self.rows}


@dataclass(frozen=True, slots=True)
class Proof:
    lie: Lie
    checkpoints: tuple[tuple[Checkpoint, bytes], ...]
    """With their signatures; FORK only."""
    exhibits: tuple[Exhibit, ...]
    opening: bytes
    """MISSING, INJECTED: the blind of the name; else empty."""


@dataclass(frozen=True, slots=True)
class Verdict:
    lie: Lie
    epoch: int
    sentence: str


class Reader:
    """Takes bytes from the front; running out of them is a refusal."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        require(len(piece) == size, f"the file ends at byte {len(self.data)}, inside a field")
        self.at += size
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def finish(self) -> None:
        require(self.at == len(self.data), f"{len(self.data) - self.at} bytes too many")


def parse_row(data: bytes) -> Row:
    require(len(data) >= ROW.size, "a row is too short")
    sequence, series, index, count, sender, common, size = ROW.unpack(data[: ROW.size])
    require(len(data) == ROW.size + 64 * size, "a row's length disagrees with its number of recipients")
    recipients = ((data[at : at + 32], data[at + 32 : at + 64]) for at in range(ROW.size, len(data), 64))
    return Row(sequence, series, index, count, sender, common, tuple(recipients))


def parse_checkpoint(reader: Reader) -> tuple[Checkpoint, bytes]:
    return Checkpoint(*CHECKPOINT.unpack(reader.take(CHECKPOINT.size))), reader.take(64)


def parse_path(reader: Reader) -> tuple[tuple[int, bytes], ...]:
    return tuple((reader.number(1), reader.take(32)) for _ in range(reader.number(2)))


def parse_exhibit(reader: Reader) -> Exhibit:
    checkpoint, signature = parse_checkpoint(reader)
    leaf = Leaf(*LEAF.unpack(reader.take(LEAF.size)))
    path = parse_path(reader)
    rows = tuple((reader.number(8), reader.take(32)) for _ in range(reader.number(4)))
    shown = tuple(parse_row(reader.take(reader.number(4))) for _ in range(reader.number(2)))
    return Exhibit(checkpoint, signature, leaf, path, rows, shown)


def parse_proof(data: bytes) -> Proof:
    require(len(data) <= PROOF_BYTES_MAX, f"the file has {len(data)} bytes, more than {PROOF_BYTES_MAX}")
    require(data.startswith(MAGIC), "the file is no group proof of version 1")
    require(sha256(data[:-32]).digest() == data[-32:], "the file is damaged: its checksum disagrees")
    reader = Reader(data[len(MAGIC) : -32])
    number = reader.number(1)
    require(number in set(Lie), f"kind {number} of proof is unknown")
    checkpoints = tuple(parse_checkpoint(reader) for _ in range(reader.number(1)))
    exhibits = tuple(parse_exhibit(reader) for _ in range(reader.number(1)))
    proof = Proof(Lie(number), checkpoints, exhibits, reader.take(reader.number(4)))
    reader.finish()
    return proof


# --- when it holds


def verify_proof(data: bytes, server_key: bytes) -> Verdict:
    """The verdict, or `Refused`. Everything shown must hang below a checkpoint that `server_key` signed."""
    proof = parse_proof(data)
    signed = [*proof.checkpoints, *((exhibit.checkpoint, exhibit.signature) for exhibit in proof.exhibits)]
    for checkpoint, signature in signed:
        require(checkpoint.server_key == server_key, "a checkpoint names another server key")
        verify_signature(checkpoint, signature)
    for exhibit in proof.exhibits:
        verify_exhibit(exhibit)
    named = proof.lie in (Lie.MISSING, Lie.INJECTED)
    require(len(proof.opening) == (32 if named else 0), "the proof has a blind where none belongs, or none")
    sentence = RULES[proof.lie](proof)
    return Verdict(proof.lie, max(checkpoint.epoch for checkpoint, _ in signed), sentence)


def verify_exhibit(exhibit: Exhibit) -> None:
    """The rows shown are those listed, the list is the leaf's, the leaf is in the tree."""
    listed = set(exhibit.rows)
    for row in exhibit.shown:
        require((row.sequence, row.compute_hash()) in listed, f"row {row.sequence} is not in its leaf")
    require(compute_rows_digest(list(exhibit.rows)) == exhibit.leaf.rows_digest, "the leaf has other rows")
    leaf_hash = exhibit.leaf.compute_hash(exhibit.checkpoint)
    root = compute_root(leaf_hash, exhibit.leaf.compute_position(), exhibit.path)
    require(root == exhibit.checkpoint.root, f"the leaf is not in the checkpoint of epoch {exhibit.checkpoint.epoch}")


def get_rows(proof: Proof, count: int) -> list[Row]:
    rows = [row for exhibit in proof.exhibits for row in exhibit.shown]
    require(len(rows) == count, f"{len(rows)} rows are shown where this proof needs {count}")
    return rows


def get_pair(proof: Proof) -> tuple[Exhibit, Exhibit]:
    require(len(proof.exhibits) == 2, f"{len(proof.exhibits)} leaves are shown where this proof needs 2")
    return proof.exhibits[0], proof.exhibits[1]


def judge_fork(proof: Proof) -> str:
    require(len(proof.checkpoints) == 2 and not proof.exhibits, "a fork is shown by two checkpoints alone")
    (first, _), (second, _) = proof.checkpoints
    if first.epoch == second.epoch:
        require(first != second, "the two checkpoints are one")
        return f"the server signed two checkpoints of epoch {first.epoch}"
    require(second.epoch == first.epoch + 1, f"epochs {first.epoch} and {second.epoch} are not neighbours")
    require(second.previous != first.compute_digest(), f"epoch {second.epoch} continues epoch {first.epoch}")
    return f"the server's checkpoint of epoch {second.epoch} does not continue the one of epoch {first.epoch}"


def judge_overlap(proof: Proof) -> str:
    first, second = get_pair(proof)
    same = (first.leaf.client, first.leaf.kind) == (second.leaf.client, second.leaf.kind)
    require(same, "the leaves are of different clients or kinds")
    require((first.leaf, first.checkpoint.epoch) != (second.leaf, second.checkpoint.epoch), "the two leaves are one")
    overlap = first.leaf.prev < second.leaf.next and second.leaf.prev < first.leaf.next
    require(overlap, "the ranges of the leaves do not overlap")
    return f"the server attested overlapping ranges in epochs {first.checkpoint.epoch} and {second.checkpoint.epoch}"


def judge_conflict(proof: Proof) -> str:
    get_pair(proof)
    first, second = get_rows(proof, 2)
    require(first.sequence == second.sequence, f"rows {first.sequence} and {second.sequence} are of two messages")
    require(is_in_conflict(first, second), f"the two rows of {first.sequence} agree")
    return f"the server attested two different messages at {first.sequence}"


def is_in_conflict(first: Row, second: Row) -> bool:
    """Whether two rows of one sequence cannot both be derived from one message."""
    if hide_ciphertexts(first) != hide_ciphertexts(second):
        return True
    pairs = zip(first.recipients, second.recipients, strict=True)
    return any(one != other and ABSENT not in (one, other) for (_, one), (_, other) in pairs)


def hide_ciphertexts(row: Row) -> bytes:
    names = tuple((name, ABSENT) for name, _ in row.recipients)
    return Row(row.sequence, row.series, row.index, row.count, row.sender, row.common, names).encode()


def judge_missing(proof: Proof) -> str:
    _, lacking = get_pair(proof)
    (row,) = get_rows(proof, 1)
    require(lacking.leaf.kind == Kind.RECEIVED, "the second leaf is not about what its client received")
    require(lacking.lacks(row.sequence), f"the second leaf does not say that {row.sequence} was not delivered")
    name = compute_name(proof.opening, lacking.leaf.client)
    require(name in {name for name, _ in row.recipients}, "the row does not name that client as a recipient")
    return f"the server attested message {row.sequence} to a recipient, and to another that it did not exist"


def judge_injected(proof: Proof) -> str:
    _, lacking = get_pair(proof)
    (row,) = get_rows(proof, 1)
    require(lacking.leaf.kind == Kind.SENT, "the second leaf is not about what its client sent")
    require(lacking.lacks(row.sequence), f"the second leaf does not say that {row.sequence} was not sent")
    require(compute_name(proof.opening, lacking.leaf.client) == row.sender, "the row names another sender")
    return f"the server delivered message {row.sequence}, which by its own word its sender did not send"


def judge_split(proof: Proof) -> str:
    first, second = get_rows(proof, 2)
    related = first.series == second.series or first.start <= second.sequence < first.start + first.count
    require(related, f"rows {first.sequence} and {second.sequence} have nothing to do with each other")
    differ = (first.series, first.start, first.count) != (second.series, second.start, second.count)
    require(differ, f"rows {first.sequence} and {second.sequence} stand side by side as they should")
    return f"the server tore the series of message {first.sequence} apart"


def judge_malformed(proof: Proof) -> str:
    require(len(proof.exhibits) == 1, "a malformed leaf is shown alone")
    fault = find_fault(proof.exhibits[0])
    require(fault is not None, "the leaf is well formed")
    return f"the server signed a leaf in epoch {proof.exhibits[0].checkpoint.epoch} whose {fault}"


def find_fault(exhibit: Exhibit) -> str | None:
    """What an honest server's leaf never is."""
    leaf, checkpoint = exhibit.leaf, exhibit.checkpoint
    sequences = [sequence for sequence, _ in exhibit.rows]
    if leaf.next != (checkpoint.epoch + 1) << INDEX_BITS or leaf.prev >= leaf.next or leaf.prev % 2**INDEX_BITS:
        return "range is not one of whole epochs up to its own"
    if any(later <= earlier for earlier, later in pairwise(sequences)):
        return "rows are not in order"
    if not all(exhibit.covers(sequence) for sequence in sequences):
        return "rows are outside its range"
    if leaf.kind not in set(Kind) or checkpoint.log_start != checkpoint.epoch << INDEX_BITS:
        return "kind or log range is impossible"
    if any(row.index >= row.count or not row.recipients for row in exhibit.shown):
        return "rows have an impossible place in their series"
    return None


RULES = {
    Lie.FORK: judge_fork,
    Lie.OVERLAP: judge_overlap,
    Lie.CONFLICT: judge_conflict,
    Lie.MISSING: judge_missing,
    Lie.INJECTED: judge_injected,
    Lie.SPLIT: judge_split,
    Lie.MALFORMED: judge_malformed,
}

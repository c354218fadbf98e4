"""The history two devices share: a chain of digests over the messages both received.

    entry(i) = H("pcg1/trn" | shared(message i) | entry(i - 1))

Each side keeps its own chain and sends the other, with its messages, how far the chain was and what it ended in. The
other compares *at that index*: it may be further along, because messages cross; it can never be behind, because what
the sender had received stands in the order before what it sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from struct import Struct, pack

from proofcast.groups.wire import WireReader

HEAD = Struct(">IIBBQQI")
ENTRIES_MAX = 1 << 20

Generations = tuple[int, int]
"""Own, peer's."""


class Comparison(Enum):
    AGREES = "agrees"
    DIFFERS = "differs"
    BEYOND = "beyond"
    """The peer has entries that we should have and have not: something was dropped."""
    UNKNOWN = "unknown"
    """Not comparable: forgotten here, or made for other generations."""


def compute_base(own: bytes, peer: bytes, generations: Generations) -> bytes:
    first, second = generations if own < peer else generations[::-1]
    numbers = first.to_bytes(4, "big") + second.to_bytes(4, "big")
    return sha256(b"pcg1/tr0" + min(own, peer) + max(own, peer) + numbers).digest()


def compute_shared(sequence: int, sender: bytes, common_digest: bytes, recipients: Sequence[bytes]) -> bytes:
    """What a message contributes to every chain, computed once for all of them."""
    head = sequence.to_bytes(8, "big") + sender + common_digest + len(recipients).to_bytes(2, "big")
    return sha256(b"pcg1/trs" + head + b"".join(recipients)).digest()


@dataclass(slots=True)
class Transcript:
    """Entries from `offset` on; the first one kept is the last that the peer has validated."""

    generations: Generations
    digests: list[bytes]
    sequences: list[int] = field(default_factory=lambda: [0])
    offset: int = 0
    validated: int = 0
    """Sequence up to which the peer's view and ours are known to agree."""
    is_dormant: bool = False
    """After a restored backup: nothing is appended before a message of the new generation."""
    is_paused: bool = False
    """A silent peer: only the last entry is kept, and nothing is kept on its account."""

    @property
    def index(self) -> int:
        return self.offset + len(self.digests) - 1

    @property
    def head(self) -> bytes:
        return self.digests[-1]

    def append(self, sequence: int, shared: bytes) -> None:
        if self.is_dormant:
            return
        self.digests.append(sha256(b"pcg1/trn" + shared + self.head).digest())
        self.sequences.append(sequence)
        if self.is_paused:
            self.trim(self.index)

    def compare(self, index: int, head: bytes) -> Comparison:
        """Our entry at the peer's index against the head it sent."""
        if index > self.index:
            return Comparison.BEYOND
        if index < self.offset:
            return Comparison.UNKNOWN
        return Comparison.AGREES if self.digests[index - self.offset] == head else Comparison.DIFFERS

    def validate(self, index: int) -> None:
        """The peer's view agrees at `index`: what is before is not needed again."""
        self.validated = max(self.validated, self.sequences[index - self.offset])
        self.is_paused = False
        self.trim(index)

    def trim(self, index: int) -> None:
        gone = index - self.offset
        del self.digests[:gone], self.sequences[:gone]
        self.offset = index

    def restart(self, base: bytes, generations: Generations) -> None:
        self.generations, self.digests, self.sequences, self.offset = generations, [base], [0], 0
        self.is_dormant = False

    def encode(self) -> bytes:
        flags = (self.is_dormant, self.is_paused)
        head = HEAD.pack(*self.generations, *flags, self.offset, self.validated, len(self.digests))
        return head + pack(f">{len(self.sequences)}Q", *self.sequences) + b"".join(self.digests)


def parse_transcript(data: bytes) -> Transcript:
    reader = WireReader(data, "a stored transcript")
    own, peer, dormant, paused, offset, validated, count = HEAD.unpack(reader.take(HEAD.size))
    sequences = [reader.number(8) for _ in range(count)]
    digests = [reader.take(32) for _ in range(count)]
    reader.finish()
    return Transcript((own, peer), digests, sequences, offset, validated, bool(dormant), bool(paused))

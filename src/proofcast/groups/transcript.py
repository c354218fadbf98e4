"""The history two devices share: a chain of digests over the messages both received.

    entry(i) = H("pcg1/trn" | shared(message i) | entry(i - 1))

Each side keeps its own chain and sends the other, with its messages, how far the chain was and what it ended in. The
other compares *at that index*: it may be further along, because messages cross; it can never be behind, because what
the sender had received stands in the order before what it sent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from struct import Struct

from proofcast.groups.wire import refuse

HEAD = Struct(">IIBBQQI")
ENTRY = Struct(">Q32s")
"""Sequence and digest."""
CHUNK_ENTRIES = 16
"""That are stored together. Whoever writes to a silent peer adds entries for long: all of them would be too much to
store with every message, each alone would be many records."""

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
    unstored: int = field(default=0, compare=False)
    """Index of the first entry that the store has not."""
    stored: range = field(default=range(0), compare=False)
    """Chunks that it has."""

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
        self.is_dormant, self.unstored = False, 0

    # --- storing: the head each time, entries by chunks of their indexes, as they come and go

    def encode_head(self) -> bytes:
        flags = (self.is_dormant, self.is_paused)
        return HEAD.pack(*self.generations, *flags, self.offset, self.validated, len(self.digests))

    def take_chunks(self) -> Iterator[tuple[int, bytes | None]]:
        """Those that have changed; None where one is gone."""
        kept = range(self.offset // CHUNK_ENTRIES, self.index // CHUNK_ENTRIES + 1)
        if self.unstored <= self.index:
            for chunk in range(max(kept.start, self.unstored // CHUNK_ENTRIES), kept.stop):
                yield chunk, self.encode_chunk(chunk)
        yield from ((chunk, None) for chunk in self.stored if chunk not in kept)
        self.stored, self.unstored = kept, self.index + 1

    def encode_chunk(self, chunk: int) -> bytes:
        first = max(self.offset, chunk * CHUNK_ENTRIES)
        places = slice(first - self.offset, (chunk + 1) * CHUNK_ENTRIES - self.offset)
        entries = zip(self.sequences[places], self.digests[places], strict=True)
        return first.to_bytes(8, "big") + b"".join([ENTRY.pack(*entry) for entry in entries])


Entries = dict[int, tuple[int, bytes]]
"""Sequence and digest by index."""


def parse_chunk(data: bytes) -> Entries:
    entries = ENTRY.iter_unpack(data[8:])
    return dict(enumerate(entries, start=int.from_bytes(data[:8], "big")))


def parse_transcript(head: bytes, chunks: Mapping[int, Entries]) -> Transcript:
    """From its head and what its chunks hold; they may hold more than it has kept."""
    own, peer, dormant, paused, offset, validated, count = HEAD.unpack(head)
    entries = {index: entry for chunk in chunks.values() for index, entry in chunk.items()}
    try:
        sequences, digests = zip(*(entries[index] for index in range(offset, offset + count)), strict=True)
    except KeyError:
        raise refuse(f"a stored transcript lacks some of its `{count}` entries") from None
    flags = bool(dormant), bool(paused)
    transcript = Transcript((own, peer), list(digests), list(sequences), offset, validated, *flags)
    transcript.unstored, transcript.stored = offset + count, range(min(chunks), max(chunks) + 1)
    return transcript

"""Blocks and stretches of blocks, named by their hashes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proofcast.chain.trust import Trust


class BlockId(NamedTuple):
    """A block by its number, for finding it, and its hash, for knowing it."""

    number: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.number} ({shorten_hash(self.hash)})"


@dataclass(frozen=True, slots=True)
class Segment:
    """The blocks `first` to `last`, both included.

    Whoever believes `last_hash` can check all of them without looking at another segment: parent links prove the
    ancestors of a hash.
    """

    first: int
    last: int
    parent_hash: bytes
    """Of the block before the first."""
    last_hash: bytes
    trust: Trust = Trust.LINKED
    """What the last hash is worth."""

    def __len__(self) -> int:
        return self.last - self.first + 1


def split_segment(segment: Segment, hashes: Sequence[bytes], length: int) -> list[Segment]:
    """Segments of at most `length` blocks, given the hash of every block of the whole."""
    assert len(hashes) == len(segment), (segment, len(hashes))
    known = (segment.parent_hash, *hashes)
    return [
        Segment(segment.first + at, segment.first + end - 1, known[at], known[end], segment.trust)
        for at in range(0, len(hashes), length)
        for end in (min(at + length, len(hashes)),)
    ]


def shorten_hash(value: bytes) -> str:
    """Enough of a hash to tell blocks apart in a message."""
    return f"0x{value[:6].hex()}.."

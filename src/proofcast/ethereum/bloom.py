"""Bloom filters of logs: 2,048 bits in which every address and topic sets three.

A bloom that lacks one of an entry's bits proves that no log has the entry; a bloom that has all three proves nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import BLOOM_LENGTH, Log

Bloom = bytes
"""256 bytes, the highest bit first."""

BITS = BLOOM_LENGTH * 8
ENTRIES_CACHED = 16_384
"""Addresses and topics repeat from block to block; a few megabytes save most of the hashing."""


@lru_cache(maxsize=ENTRIES_CACHED)
def compute_bits(entry: bytes) -> tuple[int, int, int]:
    """The three bits of an address or topic, counted from the bloom's lowest: the first 16-bit words of its hash."""
    digest = keccak256(entry)
    first, second, third = (int.from_bytes(digest[at : at + 2], "big") % BITS for at in (0, 2, 4))
    return first, second, third


def compute_mask(entry: bytes) -> int:
    first, second, third = compute_bits(entry)
    return 1 << first | 1 << second | 1 << third


def compute_bloom(logs: Iterable[Log]) -> Bloom:
    bits = 0
    for log in logs:
        bits |= compute_mask(log.address)
        for topic in log.topics:
            bits |= compute_mask(topic)
    return bits.to_bytes(BLOOM_LENGTH, "big")


def may_contain(bloom: Bloom, entry: bytes) -> bool:
    """False is a proof of absence."""
    mask = compute_mask(entry)
    return int.from_bytes(bloom, "big") & mask == mask


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which logs are wanted, as `eth_getLogs` asks it."""

    addresses: frozenset[bytes] = frozenset()
    """Any of these; empty for every address."""
    topics: tuple[frozenset[bytes] | None, ...] = ()
    """For each position any of these; None or empty for every topic, which then must still be there."""

    def matches(self, log: Log) -> bool:
        if len(log.topics) < len(self.topics) or (self.addresses and log.address not in self.addresses):
            return False
        return all(not wanted or topic in wanted for wanted, topic in zip(self.topics, log.topics, strict=False))

    @property
    def clauses(self) -> tuple[frozenset[bytes], ...]:
        """Of each of these sets a matching log has one entry."""
        return tuple(wanted for wanted in (self.addresses, *self.topics) if wanted)


def may_match(bloom: Bloom, log_filter: LogFilter) -> bool:
    """False is a proof that no log of the block matches."""
    return all(any(may_contain(bloom, entry) for entry in clause) for clause in log_filter.clauses)


def match_blooms(blooms: bytes, filters: Sequence[LogFilter]) -> list[bytes]:
    """For each filter a bitmap, lowest bit first, of the blooms that may match; `blooms` is one after the other."""
    assert len(blooms) % BLOOM_LENGTH == 0, len(blooms)
    each = [blooms[at : at + BLOOM_LENGTH] for at in range(0, len(blooms), BLOOM_LENGTH)]
    return [pack_bits([may_match(bloom, log_filter) for bloom in each]) for log_filter in filters]


def pack_bits(flags: Sequence[bool]) -> bytes:
    """Arrow's bitmap: eight flags to a byte, lowest bit first."""
    number = sum(1 << at for at, flag in enumerate(flags) if flag)
    return number.to_bytes((len(flags) + 7) // 8, "little")

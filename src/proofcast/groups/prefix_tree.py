"""A tree whose shape follows from its positions: one position, one leaf.

Positions are 256-bit numbers. A node stands where the positions below it first differ, and its hash closes over the
number of that bit; so a verifier who follows a position down from a root can reach only one leaf, and a root cannot
hold two of one client. Leaf hashes begin with 0x00, node hashes with 0x01, as in RFC 6962:

    node = SHA-256(0x01 | bit u8 | left | right)
"""

from collections.abc import Mapping
from hashlib import sha256

from proofcast.groups.proof import EMPTY_ROOT

Path = tuple[tuple[int, bytes], ...]


class PrefixTree:
    """Built at once from all leaves; paths are read off."""

    def __init__(self, leaves: Mapping[int, bytes]) -> None:
        self.paths: dict[int, list[tuple[int, bytes]]] = {position: [] for position in leaves}
        positions = sorted(leaves)
        self.root = self.build(positions, leaves) if positions else EMPTY_ROOT

    def build(self, positions: list[int], leaves: Mapping[int, bytes]) -> bytes:
        """Depth is bounded by the 256 bits of a position."""
        if len(positions) == 1:
            return leaves[positions[0]]
        bit = 256 - (positions[0] ^ positions[-1]).bit_length()
        left, right = split_at_bit(positions, bit)
        left_hash, right_hash = self.build(left, leaves), self.build(right, leaves)
        for position in left:
            self.paths[position].append((bit, right_hash))
        for position in right:
            self.paths[position].append((bit, left_hash))
        return sha256(b"\x01" + bytes([bit]) + left_hash + right_hash).digest()

    def get_path(self, position: int) -> Path:
        """From the leaf up to the root."""
        return tuple(self.paths[position])


def split_at_bit(positions: list[int], bit: int) -> tuple[list[int], list[int]]:
    """Sorted positions that agree before `bit`: those without it, those with it."""
    low, high = 0, len(positions)
    while low < high:
        middle = (low + high) // 2
        if positions[middle] >> (255 - bit) & 1:
            high = middle
        else:
            low = middle + 1
    return positions[:low], positions[low:]


def encode_path(path: Path) -> bytes:
    """depth u16 | depth x (bit u8 | sibling 32)"""
    return len(path).to_bytes(2, "big") + b"".join([bytes([bit]) + sibling for bit, sibling in path])

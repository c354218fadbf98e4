"""The accumulator of an archive of blocks before the merge: one root over (block hash, total difficulty) of each.

It is SSZ's `hash_tree_root(List[HeaderRecord, 8192])`: records hashed in pairs up to 8,192 places, empty ones as zeros,
then with their number.
"""

from collections.abc import Sequence
from hashlib import sha256

from proofcast.errors import InvalidInput, Reason

EPOCH_LENGTH = 8_192
DEPTH = 13
WORD = 32


def compute_accumulator(records: Sequence[tuple[bytes, int]]) -> bytes:
    """The root over the hashes and total difficulties of consecutive blocks, oldest first."""
    if len(records) > EPOCH_LENGTH:
        raise InvalidInput(
            Reason.MALFORMED,
            f"an archive of `{len(records)}` blocks is longer than `{EPOCH_LENGTH}`",
            hint="it is no era1 archive; get it again",
        )
    level = [sha256(block_hash + total.to_bytes(WORD, "little")).digest() for block_hash, total in records]
    empty = bytes(WORD)
    for _ in range(DEPTH):
        level = pair(level, empty)
        empty = sha256(empty + empty).digest()
    root = level[0] if level else empty
    return sha256(root + len(records).to_bytes(WORD, "little")).digest()


def pair(level: list[bytes], empty: bytes) -> list[bytes]:
    padded = [*level, empty] if len(level) % 2 else level
    return [sha256(left + right).digest() for left, right in zip(padded[::2], padded[1::2], strict=True)]

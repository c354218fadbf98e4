"""The headers that a reader has verified: one branch, each the parent of the next, from a root to the newest.

The root is the block that the user trusts. Blocks before it that lead to it are as trustworthy as it is (`trusted`);
blocks behind it are `linked` to it: nobody can put them on another past, but somebody may have made them up. Without a
trusted block the root is the first header that comes, and everything is `linked` to that and no more.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from proofcast.chain.segment import BlockId
from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedHeader, verify_header
from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum.rlp import read_span

TRUSTED = "trusted"
"""Of a block that is the user's trusted one or leads to it; the other words are those of `chain/trust.py`."""
KEPT_BELOW = 4_096
"""Headers remembered below the place where the reader is: far more than a reorg can take back."""
HINT = "the broker is wrong or lies about the chain; use another one"


@dataclass(slots=True)
class Lineage:
    trusted_hash: bytes = b""
    newest_timestamp: int = 0
    """Of the newest header, in seconds since 1970."""
    _first: int = 0
    """Number of the first hash."""
    _hashes: list[bytes] = field(default_factory=list)
    """Of consecutive blocks."""
    _path: list[VerifiedHeader] = field(default_factory=list)
    """Headers that do not lead anywhere yet: they must reach a block that is known or trusted."""
    _trusted_number: int = -1

    @property
    def newest(self) -> BlockId | None:
        return BlockId(self._first + len(self._hashes) - 1, self._hashes[-1]) if self._hashes else None

    def find(self, number: int) -> bytes | None:
        place = number - self._first
        return self._hashes[place] if 0 <= place < len(self._hashes) else None

    def verify(self, block: BlockId) -> str:
        """How far a block is believed, in a word; one that nothing leads to is refused."""
        if block.hash == self.trusted_hash:
            return TRUSTED  # known without a header, where reading begins with it
        if self.find(block.number) != block.hash:
            raise InvalidInput(
                Reason.DISAGREES,
                f"no header that came leads to block `{block}`",
                hint=HINT if not self.trusted_hash else "the broker does not know the block you trust, or lies",
            )
        if block.number - self._first > 2 * KEPT_BELOW:
            self._forget(block.number - KEPT_BELOW - self._first)
        return TRUSTED if block.number <= self._trusted_number else Trust.LINKED

    def list_locators(self) -> list[bytes]:
        """Hashes by which a broker finds where we are: the newest, then further and further back."""
        places = [len(self._hashes) - 2**step for step in range(len(self._hashes).bit_length())]
        return [self._hashes[place] for place in places] or ([self.trusted_hash] if self.trusted_hash else [])

    def receive(self, data: bytes) -> None:
        """Take consecutive headers, one after the other; false ones, and those that lead nowhere, are refused."""
        for raw in split_headers(data):
            self._take(verify_header(raw))

    def _take(self, found: VerifiedHeader) -> None:
        number, parent_hash = found.header.number, found.header.parent_hash
        if self._path or found.hash == self.trusted_hash:
            self._extend_path(found)
        elif self.find(number) == found.hash:
            return
        elif self.find(number - 1) == parent_hash:
            self._append(found)
        elif not self._hashes and parent_hash == (self.trusted_hash or parent_hash):
            self._trusted_number = number - 1 if self.trusted_hash else -1
            self._first, self._hashes = number - 1, [parent_hash]
            self._append(found)
        else:
            self._extend_path(found)

    def _append(self, found: VerifiedHeader) -> None:
        """A child of a block that is known; what was known above that is another branch."""
        if found.header.number <= self._trusted_number:
            raise InvalidInput(
                Reason.DISAGREES,
                f"block `{found.link.id}` is on another branch than the block `{self._trusted_number}` that you trust",
                hint=HINT,
            )
        del self._hashes[found.header.number - self._first :]
        self._hashes.append(found.hash)
        self.newest_timestamp = found.header.timestamp

    def _extend_path(self, found: VerifiedHeader) -> None:
        if self._path:
            verify_header(found.raw, None, self._path[-1].link.id)
        self._path.append(found)
        if found.hash == self.trusted_hash or self.find(found.header.number) == found.hash:
            self._accept_path(found)

    def _accept_path(self, last: VerifiedHeader) -> None:
        """The path leads to what is known; so what is on it is known too."""
        above = self._hashes[last.header.number + 1 - self._first :] if self._hashes else []
        first = self._path[0].header.number
        below = self._hashes[: max(0, first - self._first)] if self.find(first - 1) else []
        self._hashes = [*below, *(header.hash for header in self._path), *above]
        self._first = first - len(below)
        if not above:
            self.newest_timestamp = last.header.timestamp
        if last.hash == self.trusted_hash:
            self._trusted_number = last.header.number
        self._path.clear()

    def _forget(self, count: int) -> None:
        del self._hashes[:count]
        self._first += count


def split_headers(data: bytes) -> Iterator[bytes]:
    """The items of RLP that stand one after the other."""
    position = 0
    while position < len(data):
        span = read_span(data, position, len(data))
        yield data[position : span.end]
        position = span.end

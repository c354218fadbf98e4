"""The headers of every block that was ever journalled, and the paths between them by parent links."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from proofcast.chain.segment import BlockId
from proofcast.chain.steps import REORG_DEPTH_MAX
from proofcast.errors import Reason, Unavailable
from proofcast.feed.io.database import Database

PAGE_MAX = 512
"""Headers read at a time: about 300 kilobytes."""
NEAR = 2 * REORG_DEPTH_MAX
"""Blocks: below this depth the last block applied at a height is the one that stays."""


@dataclass(frozen=True, slots=True)
class StoredHeader:
    id: BlockId
    parent_hash: bytes
    timestamp: int
    raw: bytes


class Headers:
    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)

    def close(self) -> None:
        self._database.close()

    def find(self, block_hash: bytes) -> StoredHeader | None:
        with self._database.snapshot() as connection:
            return find_header(connection, block_hash)

    def find_id(self, block_hash: bytes) -> BlockId | None:
        """Of a block whose header is kept, or of one from which all of them descend."""
        with self._database.snapshot() as connection:
            found = find_header(connection, block_hash)
            rows = connection.execute(
                "SELECT checkpoint_number, checkpoint_hash FROM chain UNION SELECT number, hash FROM beginning"
            ).fetchall()
        beginning = (BlockId(*row) for row in rows if row[1] == block_hash)
        return found.id if found else next(beginning, None)

    def get(self, block_hash: bytes) -> StoredHeader:
        found = self.find(block_hash)
        if found is None:
            raise refuse_header(f"the header of block `0x{block_hash.hex()}` is not kept here")
        return found

    def leads(self, block: BlockId, to: BlockId) -> bool:
        """Is the block an ancestor of the other, or itself?"""
        with self._database.snapshot() as connection:
            return leads(connection, block, to)

    def find_fork(self, block: BlockId, to: BlockId) -> BlockId:
        """The newest ancestor of the block, or itself, that leads to the other one."""
        with self._database.snapshot() as connection:
            for _ in range(2 * NEAR):
                if leads(connection, block, to):
                    return block
                found = find_header(connection, block.hash)
                if found is None:
                    break
                block = BlockId(block.number - 1, found.parent_hash)
        raise refuse_header(f"nothing here leads from block `{block}` to block `{to}`")

    def read_path(self, after: BlockId, to: BlockId) -> list[StoredHeader]:
        """The first headers on the way from a block to a descendant of it; all of them where they fit a page."""
        with self._database.snapshot() as connection:
            if to.number - after.number > PAGE_MAX:
                number = min(after.number + PAGE_MAX, max(after.number + 1, to.number - NEAR))
                to = BlockId(number, find_canonical(connection, number) or b"")
            rows = connection.execute(
                "SELECT number, hash, parent, timestamp, raw FROM header WHERE number > ? AND number <= ?",
                (after.number, to.number),
            ).fetchall()
        return list(reversed(walk_back({row[1]: parse_header_row(row) for row in rows}, to, after)))


def walk_back(known: dict[bytes, StoredHeader], block: BlockId, to: BlockId) -> list[StoredHeader]:
    """Headers from the block back to the other, which is left out."""
    path: list[StoredHeader] = []
    block_hash = block.hash
    while block_hash != to.hash:
        found = known.get(block_hash)
        if found is None:
            raise refuse_header(f"the headers kept here do not lead from block `{to}` to block `{block}`")
        path.append(found)
        block_hash = found.parent_hash
    return path


def leads(connection: sqlite3.Connection, block: BlockId, to: BlockId) -> bool:
    if to.number - block.number > NEAR:
        return find_canonical(connection, block.number) == block.hash
    while to.number > block.number:
        found = find_header(connection, to.hash)
        if found is None:
            return False
        to = BlockId(to.number - 1, found.parent_hash)
    return to == block


def find_canonical(connection: sqlite3.Connection, number: int) -> bytes | None:
    row = connection.execute(
        "SELECT hash FROM step WHERE number = ? AND step = 'apply' ORDER BY sequence DESC LIMIT 1", (number,)
    ).fetchone()
    return bytes(row[0]) if row else None


def find_header(connection: sqlite3.Connection, block_hash: bytes) -> StoredHeader | None:
    row = connection.execute(
        "SELECT number, hash, parent, timestamp, raw FROM header WHERE hash = ?", (block_hash,)
    ).fetchone()
    return parse_header_row(row) if row else None


def parse_header_row(row: tuple[int, bytes, bytes, int, bytes]) -> StoredHeader:
    number, block_hash, parent, timestamp, raw = row
    return StoredHeader(BlockId(number, block_hash), parent, timestamp, raw)


def refuse_header(what: str) -> Unavailable:
    return Unavailable(
        Reason.NOT_YET, what, hint="name a block that this broker has followed, or ask one that began earlier"
    )

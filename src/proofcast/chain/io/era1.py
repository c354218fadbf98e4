"""Archives of the blocks before the merge, 8,192 to a file (era1), as every execution client exports them.

A file is a row of entries: two bytes of type, four of length, two of zeros, then the data. In order: the version; for
each block its header, body and receipts (framed snappy of RLP) and the chain's total difficulty after it; the
accumulator; an index of positions. Opening a file reads it whole. It is refused, and not only the block in question, if

- an entry is missing, surplus or cut off;
- a header does not link to the one before it, or a body or the receipts do not have the header's roots;
- the total difficulty is not the sum of the difficulties;
- the accumulator is not that of the headers, or not the one the file's name begins with (`mainnet-00000-5ec1ffb8`).

The accumulator is the file's own: who knows the true one compares it with `accumulator`.
"""

import mmap
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import cramjam

from proofcast.chain.accumulator import compute_accumulator
from proofcast.chain.io.e2store import (
    HEAD_LENGTH,
    Entry,
    iterate_entries,
    refuse,
    split_body,
    split_entries,
    split_items,
)
from proofcast.chain.io.recorded import choose_parts
from proofcast.chain.profile import ChainProfile, find_chain_id, get_profile
from proofcast.chain.segment import BlockId
from proofcast.chain.source import BlockSource
from proofcast.chain.trust import Trust
from proofcast.chain.verify import HINT, verify_block
from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.header import parse_header
from proofcast.ethereum.keccak import keccak256
from proofcast.event import Finality

ARCHIVES_MAX = 8
"""Remembered by a process: a megabyte of hashes and positions each, and a mapping of the file."""
NAME = re.compile(r"(?P<chain>.+)-(?P<epoch>\d{5})-(?P<root>[0-9a-f]{8})\.era1")


class StoredBlock(NamedTuple):
    """A verified block of the file: where its parts lie."""

    hash: bytes
    header: Entry
    body: Entry
    receipts: Entry


class Era1Source:
    trust = Trust.LINKED

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT, f"`{path}` cannot be read (`{error}`)", hint="check the path"
            ) from error
        try:
            self._first, self._blocks, self.accumulator = self._verify()
        except InvalidInput as error:
            raise InvalidInput(
                error.reason, f"the archive `{path}` is refused: {error}", hint="get the file again, from elsewhere"
            ) from error

    @property
    def alternatives(self) -> Sequence[BlockSource]:
        return (self,)

    def get_chain_id(self) -> int:
        named = NAME.fullmatch(self._path.name)
        chain_id = find_chain_id(named["chain"]) if named else None
        if chain_id is None:
            raise InvalidRequest(
                Reason.WRONG_NETWORK,
                f"the name of `{self.name}` says no known chain",
                hint="archives are called like `mainnet-00000-5ec1ffb8.era1`",
            )
        return chain_id

    def get_head(self, finality: Finality) -> BlockId | None:
        """The same for every finality: what is archived is past."""
        return BlockId(self._first + len(self._blocks) - 1, self._blocks[-1].hash)

    def get_headers(self, first: int, last: int) -> list[bytes]:
        return [self._decompress(self._get(number).header) for number in range(first, last + 1)]

    def get_block_by_hash(self, block_hash: bytes) -> RawBlock:
        index = self._by_hash.get(block_hash)
        if index is None:
            raise self._refuse(f"0x{block_hash.hex()}")
        return choose_parts(self._read(self._blocks[index]), with_receipts=True, with_transactions=False)

    def get_blocks(
        self, first: int, last: int, *, with_receipts: bool = True, with_transactions: bool = False
    ) -> list[RawBlock]:
        blocks = (self._read(self._get(number)) for number in range(first, last + 1))
        return [choose_parts(block, with_receipts, with_transactions) for block in blocks]

    # --- reading

    @cached_property
    def _by_hash(self) -> dict[bytes, int]:
        return {block.hash: index for index, block in enumerate(self._blocks)}

    def _get(self, number: int) -> StoredBlock:
        if not 0 <= number - self._first < len(self._blocks):
            raise self._refuse(str(number))
        return self._blocks[number - self._first]

    def _refuse(self, block: str) -> Unavailable:
        last = self._first + len(self._blocks) - 1
        return Unavailable(
            Reason.NOT_YET, f"block `{block}` is not in `{self.name}`", hint=f"it holds `{self._first}` to `{last}`"
        )

    def _decompress(self, entry: Entry) -> bytes:
        try:
            return bytes(cramjam.snappy.decompress(self._data[entry.start : entry.end]))
        except cramjam.DecompressionError as error:
            raise refuse(entry.start, f"no snappy ({error})") from error

    def _read(self, block: StoredBlock) -> RawBlock:
        transactions, _ = split_body(self._decompress(block.body))
        return RawBlock(self._decompress(block.header), transactions, split_items(self._decompress(block.receipts)))

    # --- verifying the file

    def _verify(self) -> tuple[int, list[StoredBlock], bytes]:
        """The number of the first block, all blocks, and the accumulator."""
        entries = list(iterate_entries(self._data))
        blocks, (accumulator, index) = split_entries(entries)
        first, stored = self._verify_blocks(blocks)
        self._verify_index(index, first, blocks)
        return first, stored, self._verify_accumulator(accumulator, blocks, stored)

    def _verify_blocks(self, blocks: Sequence[Sequence[Entry]]) -> tuple[int, list[StoredBlock]]:
        profile = get_profile(self._find_chain_id())
        parent: BlockId | None = None
        stored: list[StoredBlock] = []
        for header, body, receipts, _ in blocks:
            block = StoredBlock(b"", header, body, receipts)
            parent = self._verify_block(block, profile, parent)
            stored.append(block._replace(hash=parent.hash))
        assert parent is not None
        return parent.number - len(stored) + 1, stored

    def _find_chain_id(self) -> int:
        named = NAME.fullmatch(self._path.name)
        return (find_chain_id(named["chain"]) if named else None) or 1

    def _verify_block(self, block: StoredBlock, profile: ChainProfile, parent: BlockId | None) -> BlockId:
        verified = verify_block(self._read(block), profile, None, parent)
        _, ommers = split_body(self._decompress(block.body))
        if keccak256(ommers) != verified.header.ommers_hash:
            raise InvalidInput(
                Reason.DISAGREES,
                f"the ommers of block `{verified.header.number}` have the hash `0x{keccak256(ommers).hex()}`,"
                f" its header says `0x{verified.header.ommers_hash.hex()}`",
                hint=HINT,
            )
        return verified.link.id

    def _verify_accumulator(
        self, entry: Entry, blocks: Sequence[Sequence[Entry]], stored: Sequence[StoredBlock]
    ) -> bytes:
        records, before = [], None
        for (header, _, _, total), block in zip(blocks, stored, strict=True):
            sum_ = int.from_bytes(self._data[total.start : total.end], "little")
            difficulty = parse_header(self._decompress(header)).difficulty
            if before is not None and sum_ != before + difficulty:
                raise refuse(total.start, f"the total difficulty `{sum_}`, not `{before + difficulty}`,")
            records.append((block.hash, sum_))
            before = sum_
        computed, written = compute_accumulator(records), self._data[entry.start : entry.end]
        named = NAME.fullmatch(self._path.name)
        if computed != written or (named and not computed.hex().startswith(named["root"])):
            raise InvalidInput(
                Reason.DISAGREES,
                f"its headers have the accumulator `0x{computed.hex()}`, it says `0x{written.hex()}`"
                + (f" and its name `{named['root']}`" if named else ""),
                hint=HINT,
            )
        return computed

    def _verify_index(self, entry: Entry, first: int, blocks: Sequence[Sequence[Entry]]) -> None:
        """Start number, the position of every block relative to this entry, and their count."""
        base = entry.start - HEAD_LENGTH
        expected = [first, *(block[0].start - HEAD_LENGTH - base for block in blocks), len(blocks)]
        if self._data[entry.start : entry.end] != b"".join(
            value.to_bytes(8, "little", signed=True) for value in expected
        ):
            raise refuse(entry.start, "an index that does not fit the blocks")


def open_archive(path: Path) -> Era1Source:
    """The archive, verified once per process for as long as the file stays the same."""
    try:
        state = path.stat()
    except OSError:
        return Era1Source(path)  # which says why it cannot be read
    return remember_archive(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=ARCHIVES_MAX)
def remember_archive(path: Path, size: int, changed_ns: int) -> Era1Source:
    return Era1Source(path)

"""Real receipts under synthetic headers: a chain of any length that costs nothing to read.

Block `n` has the receipts of the `n`-th recorded block, counted round and round, under its header with number and
parent hash replaced, so that everything about it can be verified. Headers are made once and kept in a file, and
receipts are kept as they are, so that nobody decompresses anything while the clock runs.
"""

import mmap
import pickle
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from proofcast.chain.segment import BlockId
from proofcast.chain.source import BlockSource
from proofcast.chain.trust import Trust
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.header import compute_hash, encode_header
from proofcast.event import Finality
from proofcast.testing.ethereum import Recorded

HEADERS, OFFSETS, RECEIPTS = "headers.bin", "offsets.bin", "receipts.pickle"
CHAIN_ID = 1


def write_repeated(folder: Path, blocks: Sequence[Recorded], count: int) -> str:
    """Blocks 1 to `count`; returns the description by which Spark opens them."""
    folder.mkdir(parents=True, exist_ok=True)
    offsets, parent = array("Q", [0]), bytes(32)
    with (folder / HEADERS).open("wb") as file:
        for number in range(1, count + 1):
            header = replace(blocks[number % len(blocks)].header, number=number, parent_hash=parent)
            raw = encode_header(header)
            parent = compute_hash(raw)
            file.write(raw)
            offsets.append(offsets[-1] + len(raw))
    (folder / OFFSETS).write_bytes(offsets.tobytes())
    (folder / RECEIPTS).write_bytes(pickle.dumps([block.receipts for block in blocks]))
    return f"python:bench.repeated:open_repeated:{folder}"


def open_repeated(folder: str) -> BlockSource:
    return RepeatedSource(Path(folder))


class RepeatedSource:
    trust = Trust.LINKED

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        with (folder / HEADERS).open("rb") as file:
            self._headers = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._offsets = array("Q")
        self._offsets.frombytes((folder / OFFSETS).read_bytes())
        self._receipts: list[tuple[bytes, ...]] = pickle.loads((folder / RECEIPTS).read_bytes())

    @property
    def alternatives(self) -> Sequence[BlockSource]:
        return (self,)

    def get_chain_id(self) -> int:
        return CHAIN_ID

    def get_head(self, finality: Finality) -> BlockId | None:
        last = len(self._offsets) - 1
        return BlockId(last, compute_hash(self._get_header(last)))

    def get_headers(self, first: int, last: int) -> list[bytes]:
        return [self._get_header(number) for number in range(first, last + 1)]

    def get_block_by_hash(self, block_hash: bytes) -> RawBlock:
        raise NotImplementedError("only ranges are read here")

    def get_blocks(
        self, first: int, last: int, *, with_receipts: bool = True, with_transactions: bool = False
    ) -> list[RawBlock]:
        return [
            RawBlock(self._get_header(number), None, self._receipts[number % len(self._receipts)])
            for number in range(first, last + 1)
        ]

    def _get_header(self, number: int) -> bytes:
        return self._headers[self._offsets[number - 1] : self._offsets[number]]

"""Archives to read: blocks written in the era1 format."""

from collections.abc import Sequence
from pathlib import Path

import cramjam

from proofcast.chain.accumulator import compute_accumulator
from proofcast.chain.io.e2store import ACCUMULATOR, BODY, DIFFICULTY, HEADER, INDEX, RECEIPTS, VERSION
from proofcast.ethereum import rlp
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.header import compute_hash, parse_header
from proofcast.ethereum.rlp import Item


def write_era1(folder: Path, chain: str, epoch: int, blocks: Sequence[RawBlock], total_difficulty: int = 0) -> Path:
    """An archive of blocks without ommers; `total_difficulty` is that before the first of them."""
    data, positions, records = encode_entry(VERSION, b""), list[int](), list[tuple[bytes, int]]()
    for block in blocks:
        total_difficulty += parse_header(block.header).difficulty
        positions.append(len(data))
        records.append((compute_hash(block.header), total_difficulty))
        data += encode_block(block, total_difficulty)
    root = compute_accumulator(records)
    data += encode_entry(ACCUMULATOR, root)
    numbers = [parse_header(blocks[0].header).number, *(at - len(data) for at in positions), len(blocks)]
    data += encode_entry(INDEX, b"".join(number.to_bytes(8, "little", signed=True) for number in numbers))
    path = folder / f"{chain}-{epoch:05}-{root[:4].hex()}.era1"
    path.write_bytes(data)
    return path


def encode_entry(type_: int, data: bytes) -> bytes:
    return type_.to_bytes(2, "little") + len(data).to_bytes(4, "little") + b"\0\0" + data


def encode_block(block: RawBlock, total_difficulty: int) -> bytes:
    body = rlp.encode([[embed(raw) for raw in block.transactions or ()], []])
    receipts = rlp.encode([embed(raw) for raw in block.receipts or ()])
    parts = ((HEADER, block.header), (BODY, body), (RECEIPTS, receipts))
    entries = [encode_entry(type_, bytes(cramjam.snappy.compress(data))) for type_, data in parts]
    return b"".join(entries) + encode_entry(DIFFICULTY, total_difficulty.to_bytes(32, "little"))


def embed(raw: bytes) -> Item:
    """Consensus bytes inside a list: a legacy one is a list itself, a typed one a string."""
    return rlp.decode(raw) if raw[0] >= rlp.LIST else raw

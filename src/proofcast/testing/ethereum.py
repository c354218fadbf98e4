"""Recorded blocks, made-up receipts and damaged bytes, for whoever tests what reads them."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from proofcast.ethereum.block import RawBlock, parse_recorded
from proofcast.ethereum.bloom import compute_bloom
from proofcast.ethereum.header import Header, parse_header
from proofcast.ethereum.receipt import ADDRESS_LENGTH, STATE_ROOT_LENGTH, TOPIC_LENGTH, TOPICS_MAX, Log, Receipt
from proofcast.ethereum.rlp import Item

DEPOSIT_TYPE = 0x7E
"""Of rollups, with two further fields: a type that Ethereum does not know."""
HEADS = bytes((0x00, 0x01, 0x7F, 0x80, 0x81, 0xA0, 0xB7, 0xB8, 0xB9, 0xBF, 0xC0, 0xC1, 0xF7, 0xF8, 0xF9, 0xFF))
"""The first and last bytes of everything that a head can say."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A block, and what an index written by other programs says about it."""

    raw: RawBlock
    header: Header
    facts: dict[str, object]

    @property
    def receipts(self) -> tuple[bytes, ...]:
        assert self.raw.receipts is not None, self.header.number
        return self.raw.receipts


def read_recorded(folder: Path) -> list[Recorded]:
    """All blocks of a folder with an `index.json`."""
    index: list[dict[str, object]] = json.loads((folder / "index.json").read_text())
    return [read_block(folder, facts) for facts in index]


def read_block(folder: Path, facts: dict[str, object]) -> Recorded:
    raw = parse_recorded(gzip.decompress((folder / str(facts["file"])).read_bytes()))
    return Recorded(raw, parse_header(raw.header), facts)


# --- making up


def draw_receipt(dice: Random) -> Receipt:
    """A receipt of any type, with the bloom of its logs."""
    type_ = dice.choice((0, 0, 1, 2, 3, 4, DEPOSIT_TYPE))
    outcomes = [b"", b"\1"] + [dice.randbytes(STATE_ROOT_LENGTH)] * (type_ == 0)
    logs = tuple(draw_log(dice) for _ in range(dice.choice((0, 1, 2, 5))))
    further: tuple[Item, ...] = (b"\5", [b"x", [b""]]) if type_ == DEPOSIT_TYPE else ()
    return Receipt(
        type_, dice.choice(outcomes), dice.getrandbits(dice.randrange(64)), compute_bloom(logs), logs, further
    )


def draw_log(dice: Random) -> Log:
    topics = tuple(dice.randbytes(TOPIC_LENGTH) for _ in range(dice.randrange(TOPICS_MAX + 1)))
    return Log(dice.randbytes(ADDRESS_LENGTH), topics, dice.randbytes(dice.choice((0, 1, 32, 55, 56, 300))))


# --- damaging


def damage(dice: Random, data: bytes) -> bytes:
    """The same bytes but for one fault: a bit, a head, a piece less, a piece more, an end."""
    at = dice.randrange(len(data) + 1)
    other = min(len(data), at + dice.choice((1, 1, 2, 32, 200)))
    faults: Sequence[bytes] = (
        data[:at] + bytes(byte ^ 1 << dice.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :],
        data[:at] + bytes((dice.choice(HEADS),)) + data[at + 1 :],
        data[:at] + bytes((dice.choice(HEADS),)) + data[at:],
        data[:at] + data[other:],
        data[:other] + data[at:],
        data[:at],
        data + dice.randbytes(dice.choice((1, 2, 60))),
    )
    return dice.choice(faults)

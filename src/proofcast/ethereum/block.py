"""A block as someone hands it to us: bytes that nobody has checked, and the format of recorded files."""

from dataclasses import dataclass

from proofcast.ethereum import rlp
from proofcast.ethereum.rlp import Span, get_string, read_children, read_whole


@dataclass(frozen=True, slots=True)
class RawBlock:
    """Untrusted; `proofcast.chain` turns it into something that may be believed."""

    header: bytes
    transactions: tuple[bytes, ...] | None
    """Consensus bytes of each, type byte first; None where the source did not give them."""
    receipts: tuple[bytes, ...] | None


def parse_recorded(data: bytes) -> RawBlock:
    """A recorded file after decompression: `rlp([header, [transaction...], [receipt...]])`, the latter two as strings.

    Every transaction has a receipt, so where one of the two lists alone is empty, the recording left it out.
    """
    whole = read_whole(data)
    parts = read_children(data, whole)
    rlp.require_count(parts, whole, 3, 3)
    header, transactions, receipts = parts
    read_children(data, header)
    bodies, outcomes = get_strings(data, transactions), get_strings(data, receipts)
    return RawBlock(
        data[header.position : header.end],
        bodies if bodies or not outcomes else None,
        outcomes if outcomes or not bodies else None,
    )


def get_strings(data: bytes, span: Span) -> tuple[bytes, ...]:
    return tuple(get_string(data, child) for child in read_children(data, span))


def encode_recorded(block: RawBlock) -> bytes:
    payload = block.header + rlp.encode(list(block.transactions or ())) + rlp.encode(list(block.receipts or ()))
    return rlp.encode_head(len(payload), rlp.LIST, rlp.LONG_LIST) + payload

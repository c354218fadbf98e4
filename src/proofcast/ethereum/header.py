"""Block headers of every fork: fifteen fields since Frontier, more behind them fork by fork.

| fork | fields | new |
|---|---|---|
| Frontier | 15 | |
| London | 16 | base fee |
| Shanghai | 17 | withdrawals root |
| Cancun | 20 | blob gas used, excess blob gas, parent beacon root |
| Prague | 21 | requests hash |

A fork to come adds fields at the end; they are kept as they are, so that a header of any fork is parsed, hashed and
written back byte for byte.
"""

from dataclasses import dataclass
from itertools import takewhile

from proofcast.ethereum import rlp
from proofcast.ethereum.keccak import HASH_LENGTH, keccak256
from proofcast.ethereum.receipt import ADDRESS_LENGTH, BLOOM_LENGTH
from proofcast.ethereum.rlp import Item, Span, get_integer, get_string, read_children, read_whole

FIELDS_MIN = 15
KNOWN_FIELDS = 21
NONCE_LENGTH = 8
QUANTITY_BITS = 63
"""Numbers, gas and times: signed columns hold them, and no chain comes near."""
WORD_BITS = 256


@dataclass(frozen=True, slots=True)
class Header:
    parent_hash: bytes
    ommers_hash: bytes
    beneficiary: bytes
    state_root: bytes
    transactions_root: bytes
    receipts_root: bytes
    logs_bloom: bytes
    difficulty: int
    number: int
    gas_limit: int
    gas_used: int
    timestamp: int
    """Seconds since 1970."""
    extra_data: bytes
    mix_hash: bytes
    nonce: bytes
    base_fee: int | None = None
    withdrawals_root: bytes | None = None
    blob_gas_used: int | None = None
    excess_blob_gas: int | None = None
    parent_beacon_root: bytes | None = None
    requests_hash: bytes | None = None
    further: tuple[bytes, ...] = ()
    """Fields of forks to come."""


def compute_hash(header_bytes: bytes) -> bytes:
    """A block's identity: the hash of its header's bytes."""
    return keccak256(header_bytes)


def parse_header(data: bytes) -> Header:
    whole = read_whole(data)
    fields = read_children(data, whole)
    rlp.require_count(fields, whole, FIELDS_MIN, None)

    def hash_at(index: int) -> bytes:
        return get_string(data, fields[index], HASH_LENGTH)

    def integer_at(index: int, bits: int = QUANTITY_BITS) -> int:
        return get_integer(data, fields[index], bits)

    return Header(
        parent_hash=hash_at(0),
        ommers_hash=hash_at(1),
        beneficiary=get_string(data, fields[2], ADDRESS_LENGTH),
        state_root=hash_at(3),
        transactions_root=hash_at(4),
        receipts_root=hash_at(5),
        logs_bloom=get_string(data, fields[6], BLOOM_LENGTH),
        difficulty=integer_at(7, WORD_BITS),
        number=integer_at(8),
        gas_limit=integer_at(9),
        gas_used=integer_at(10),
        timestamp=integer_at(11),
        extra_data=get_string(data, fields[12]),
        mix_hash=hash_at(13),
        nonce=get_string(data, fields[14], NONCE_LENGTH),
        base_fee=integer_at(15, WORD_BITS) if len(fields) > 15 else None,
        withdrawals_root=hash_at(16) if len(fields) > 16 else None,
        blob_gas_used=integer_at(17) if len(fields) > 17 else None,
        excess_blob_gas=integer_at(18) if len(fields) > 18 else None,
        parent_beacon_root=hash_at(19) if len(fields) > 19 else None,
        requests_hash=hash_at(20) if len(fields) > 20 else None,
        further=get_further(data, fields[KNOWN_FIELDS:]),
    )


def get_further(data: bytes, spans: list[Span]) -> tuple[bytes, ...]:
    return tuple(get_string(data, span) for span in spans)


def encode_header(header: Header) -> bytes:
    values = (getattr(header, name) for name in FIELD_NAMES)
    present: list[int | bytes] = list(takewhile(lambda value: value is not None, values))
    return rlp.encode([*map(encode_field, present), *header.further])


FIELD_NAMES = tuple(name for name in Header.__slots__ if name != "further")


def encode_field(value: int | bytes) -> Item:
    return value if isinstance(value, bytes) else rlp.encode_integer(value)

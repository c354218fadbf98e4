"""Receipts: what a transaction did, in the bytes that the receipts root commits to.

A receipt is `rlp([state root or status, cumulative gas, bloom, logs])`, for types other than 0 behind the type's byte.
What is accepted:

- type 0 is never prefixed; types 1 to 4 have exactly these four fields;
- a type not known yet may have further fields behind them, which are kept as they are (rollups' deposits have two);
- the first field is a status, 0 or 1, or before Byzantium (so in type 0 alone) the 32 bytes of a state root;
- cumulative gas has at most 63 bits, so that it fits a column of signed integers; no block comes near;
- a bloom has 256 bytes, an address 20, a topic 32, and a log at most four topics.
"""

from dataclasses import dataclass

from proofcast.ethereum import rlp
from proofcast.ethereum.rlp import Item, Span, get_integer, get_string, read_children, read_whole, refuse

STANDARD_FIELDS = 4
NEWEST_KNOWN_TYPE = 4
"""Set-code transactions, since Prague."""
TYPE_END = 0x80
"""EIP-2718: a first byte below it is a type, from 0xc0 on the head of a list."""
GAS_BITS = 63
STATE_ROOT_LENGTH, BLOOM_LENGTH, ADDRESS_LENGTH, TOPIC_LENGTH = 32, 256, 20, 32
TOPICS_MAX = 4
"""LOG0 to LOG4 are all the instructions there are."""


@dataclass(frozen=True, slots=True)
class Log:
    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Receipt:
    type: int
    post_state_or_status: bytes
    """A state root of 32 bytes before Byzantium; since then `b"\\1"` for success and `b""` for failure."""
    cumulative_gas: int
    logs_bloom: bytes
    logs: tuple[Log, ...]
    further: tuple[Item, ...] = ()
    """Fields that only a type not known yet may have."""

    @property
    def status(self) -> int | None:
        """1 or 0; None before Byzantium, when a receipt did not say."""
        return None if len(self.post_state_or_status) == STATE_ROOT_LENGTH else len(self.post_state_or_status)


def parse_receipt(raw: bytes) -> Receipt:
    type_ = get_type(raw)
    whole = read_whole(raw, 1 if type_ else 0)
    fields = read_children(raw, whole)
    rlp.require_count(fields, whole, STANDARD_FIELDS, STANDARD_FIELDS if type_ <= NEWEST_KNOWN_TYPE else None)
    outcome, gas, bloom, logs, *further = fields
    return Receipt(
        type_,
        parse_outcome(raw, outcome, type_),
        get_integer(raw, gas, GAS_BITS),
        get_string(raw, bloom, BLOOM_LENGTH),
        tuple(parse_log(raw, log) for log in read_children(raw, logs)),
        tuple(rlp.build_item(raw, field, 1) for field in further),
    )


def get_type(raw: bytes) -> int:
    first = raw[0] if raw else 0
    if 0 < first < TYPE_END:
        return first
    if first < rlp.LIST:
        raise refuse(0, "neither a type nor a list begins the receipt")
    return 0


def parse_outcome(raw: bytes, span: Span, type_: int) -> bytes:
    outcome = get_string(raw, span)
    if outcome in (b"", b"\1") or (type_ == 0 and len(outcome) == STATE_ROOT_LENGTH):
        return outcome
    raise refuse(span.position, "neither a status nor a state root stands")


def parse_log(raw: bytes, span: Span) -> Log:
    fields = read_children(raw, span)
    rlp.require_count(fields, span, 3, 3)
    address, topics, data = fields
    topic_spans = read_children(raw, topics)
    if len(topic_spans) > TOPICS_MAX:
        raise refuse(topics.position, f"a log has `{len(topic_spans)}` topics, more than `{TOPICS_MAX}`,")
    return Log(
        get_string(raw, address, ADDRESS_LENGTH),
        tuple(get_string(raw, topic, TOPIC_LENGTH) for topic in topic_spans),
        get_string(raw, data),
    )


def encode_receipt(receipt: Receipt) -> bytes:
    logs: list[Item] = [[log.address, list(log.topics), log.data] for log in receipt.logs]
    gas = rlp.encode_integer(receipt.cumulative_gas)
    payload = rlp.encode([receipt.post_state_or_status, gas, receipt.logs_bloom, logs, *receipt.further])
    return bytes((receipt.type,)) + payload if receipt.type else payload

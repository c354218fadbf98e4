"""The receipts of a block, checked against its header's root, as columns: the definition the kernel must agree with.

- every receipt parses as `receipt.py` says;
- the trie over their bytes has the given root;
- where a bloom is given, each receipt's bloom is that of its logs, and all of them together are the given one.

Columns are buffers in Arrow's layout, so that a table is made of them without copying and this module needs no Arrow.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum.bloom import compute_bloom, pack_bits
from proofcast.ethereum.receipt import BLOOM_LENGTH, TOPICS_MAX, Log, Receipt, parse_receipt
from proofcast.ethereum.trie import compute_ordered_root

Buffers = tuple[bytes | None, ...]
"""What `pyarrow.Array.from_buffers` takes: (validity, values) of integers, (validity, offsets, values) of byte strings.

Integers have 64 bits, offsets 32, validity is a bitmap with the lowest bit first, or None where nothing is null.
"""

BYTES_MAX = 2**31 - 1
"""Of all receipts of a block: what an offset of 32 bits reaches. A real block has a few million."""


@dataclass(frozen=True, slots=True)
class LogColumns:
    """One row per log, in the block's order; then one row per receipt."""

    logs: int
    transaction_index: Buffers
    log_index: Buffers
    """Counted through the whole block."""
    address: Buffers
    topic0: Buffers
    topic1: Buffers
    topic2: Buffers
    topic3: Buffers
    data: Buffers

    receipts: int
    type: Buffers
    status: Buffers
    """Null before Byzantium."""
    cumulative_gas: Buffers
    log_count: Buffers


def check_receipts(receipts: Sequence[bytes], root: bytes, bloom: bytes | None) -> LogColumns:
    if sum(map(len, receipts)) > BYTES_MAX:
        raise InvalidInput(
            Reason.MALFORMED, f"the receipts of a block have more than `{BYTES_MAX}` bytes", hint="get the block again"
        )
    parsed = [parse_numbered(index, raw) for index, raw in enumerate(receipts)]
    verify_root(receipts, root)
    if bloom is not None:
        verify_blooms(parsed, bloom)
    return build_columns(parsed)


def parse_numbered(index: int, raw: bytes) -> Receipt:
    try:
        return parse_receipt(raw)
    except InvalidInput as error:
        raise InvalidInput(error.reason, f"receipt `{index}`: {error}", hint=error.hint) from None


def verify_root(receipts: Sequence[bytes], root: bytes) -> None:
    computed = compute_ordered_root(receipts)
    if computed != root:
        raise disagree(
            f"the `{len(receipts)}` receipts have the root `{computed.hex()}` instead of the header's `{root.hex()}`"
        )


def verify_blooms(receipts: Sequence[Receipt], bloom: bytes) -> None:
    union = 0
    for index, receipt in enumerate(receipts):
        if compute_bloom(receipt.logs) != receipt.logs_bloom:
            raise disagree(f"the bloom of receipt `{index}` is not that of its `{len(receipt.logs)}` logs")
        union |= int.from_bytes(receipt.logs_bloom, "big")
    if union.to_bytes(BLOOM_LENGTH, "big") != bloom:
        raise disagree(f"the blooms of `{len(receipts)}` receipts together are not the header's")


def disagree(message: str) -> InvalidInput:
    return InvalidInput(Reason.DISAGREES, message, hint="get the block again, from another source")


# --- building


def build_columns(receipts: Sequence[Receipt]) -> LogColumns:
    logs = [log for receipt in receipts for log in receipt.logs]
    owners = [index for index, receipt in enumerate(receipts) for _ in receipt.logs]
    topic0, topic1, topic2, topic3 = (build_strings([get_topic(log, at) for log in logs]) for at in range(TOPICS_MAX))
    return LogColumns(
        logs=len(logs),
        transaction_index=build_integers(owners),
        log_index=build_integers(range(len(logs))),
        address=build_strings([log.address for log in logs]),
        topic0=topic0,
        topic1=topic1,
        topic2=topic2,
        topic3=topic3,
        data=build_strings([log.data for log in logs]),
        receipts=len(receipts),
        type=build_integers([receipt.type for receipt in receipts]),
        status=build_integers([receipt.status for receipt in receipts]),
        cumulative_gas=build_integers([receipt.cumulative_gas for receipt in receipts]),
        log_count=build_integers([len(receipt.logs) for receipt in receipts]),
    )


def get_topic(log: Log, at: int) -> bytes | None:
    return log.topics[at] if at < len(log.topics) else None


def build_validity(values: Sequence[object]) -> bytes | None:
    return pack_bits([value is not None for value in values]) if None in values else None


def build_integers(values: Sequence[int | None]) -> Buffers:
    return build_validity(values), array("q", [value or 0 for value in values]).tobytes()


def build_strings(values: Sequence[bytes | None]) -> Buffers:
    strings = [value or b"" for value in values]
    offsets = array("i", accumulate(map(len, strings), initial=0))
    return build_validity(values), offsets.tobytes(), b"".join(strings)

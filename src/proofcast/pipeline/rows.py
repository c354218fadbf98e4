"""Verified blocks as Arrow batches: the rows of one table.

A row is made of its step's place and, in tables that have a row per log or transaction, of one entry of its block. Only
the columns that are asked for are built.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedBlock
from proofcast.ethereum.bloom import LogFilter
from proofcast.ethereum.columns import Buffers
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import ADDRESS_LENGTH, TYPE_END
from proofcast.event import Finality, Step
from proofcast.pipeline.schemas import (
    ARROW,
    BYTES,
    CHANGES,
    LOG,
    NUMBER,
    PLACE,
    PLACE_COLUMNS,
    RECEIPT,
    STEP,
    TOPICS,
    TRANSACTION,
    Table,
)

Value = int | str | bytes | None
Blocks = Sequence[VerifiedBlock | None]

HEAD_LENGTH = 8
MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step and, where it applies a block, the block."""

    sequence: int
    step: Step
    number: int
    hash: bytes
    trust: Trust
    finality: Finality
    chain_id: int
    block: VerifiedBlock | None


def build_table(steps: Sequence[StepRow], table: str, columns: Sequence[str] = ()) -> pa.RecordBatch:
    """The rows of one table, with all of its columns unless some are named."""
    names = list(columns or ARROW[table].names)
    if table == CHANGES:
        return build_changes(steps).select(names)
    kept = steps if table == Table.BLOCKS else [step for step in steps if step.step is Step.APPLY]
    inside = INSIDE.get(table)
    arrays = build_entries(kept, names, inside) if inside else [build_step_column(kept, name) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=names)


# --- a row per step

STEP_VALUES: dict[str, Callable[[StepRow], Value]] = {
    "sequence": lambda step: step.sequence,
    "number": lambda step: step.number,
    "block_hash": lambda step: step.hash,
    "trust": lambda step: step.trust.value,
    "step": lambda step: step.step.value,
    "finality": lambda step: step.finality.value,
    "chain_id": lambda step: step.chain_id,
}
BLOCK_VALUES: dict[str, Callable[[VerifiedBlock], Value]] = {
    "time": lambda block: block.header.timestamp * MICROSECONDS,
    "parent_hash": lambda block: block.header.parent_hash,
    "beneficiary": lambda block: block.header.beneficiary,
    "receipts_root": lambda block: block.header.receipts_root,
    "gas_limit": lambda block: block.header.gas_limit,
    "gas_used": lambda block: block.header.gas_used,
    "receipt_count": lambda block: block.columns.receipts if block.columns else None,
    "log_count": lambda block: block.columns.logs if block.columns else None,
    "header": lambda block: block.raw.header,
}
"""Null where a step has no block."""
STEP_KINDS = dict((*PLACE, *STEP))


def build_step_column(steps: Sequence[StepRow], name: str) -> pa.Array:
    if name == "receipts":
        return build_receipts([step.block for step in steps])
    if name in STEP_VALUES:
        return pa.array(map(STEP_VALUES[name], steps), STEP_KINDS[name], size=len(steps))
    get = BLOCK_VALUES[name]
    return pa.array([get(step.block) if step.block else None for step in steps], STEP_KINDS[name])


def build_receipts(blocks: Blocks) -> pa.ListArray:
    """A list per block; null where they were not fetched."""
    raws = [raw for block in blocks if block for raw in block.raw.receipts or ()]
    arrays = [build_receipt_column(blocks, name) for name, _ in RECEIPT[:-1]]
    structs = pa.StructArray.from_arrays([*arrays, pa.array(raws, BYTES)], fields=list(pa.struct(RECEIPT)))
    columns = [block.columns if block else None for block in blocks]
    offsets = pa.array(accumulate((found.receipts if found else 0 for found in columns), initial=0), pa.int32())
    absent = pa.array([found is None for found in columns], pa.bool_())
    return pa.ListArray.from_arrays(offsets, structs, type=ARROW[Table.RECEIPTS].field("receipts").type, mask=absent)


def build_receipt_column(blocks: Blocks, name: str) -> pa.Array:
    columns = [block.columns for block in blocks if block and block.columns]
    return join(NUMBER, [(found.receipts, getattr(found, name)) for found in columns])


# --- a row per log or transaction


@dataclass(frozen=True, slots=True)
class Inside:
    """What a block has several of."""

    count: Callable[[VerifiedBlock | None], int]
    build: Callable[[Blocks, str], pa.Array]
    """One column of the entries of all blocks, one block after the other."""


def build_entries(steps: Sequence[StepRow], names: Sequence[str], inside: Inside) -> list[pa.Array]:
    blocks = [step.block for step in steps]
    owners = pa.array(numpy.repeat(numpy.arange(len(steps)), [inside.count(block) for block in blocks]), NUMBER)
    return [
        build_step_column(steps, name).take(owners) if name in PLACE_COLUMNS else inside.build(blocks, name)
        for name in names
    ]


def count_logs(block: VerifiedBlock | None) -> int:
    return block.columns.logs if block and block.columns else 0


def build_log_column(blocks: Blocks, name: str) -> pa.Array:
    columns = [block.columns for block in blocks if block and block.columns]
    if name == "address_head":
        return build_heads([found.address[-1] for found in columns])
    return join(LOG_KINDS[name], [(found.logs, getattr(found, name)) for found in columns])


def build_heads(addresses: Sequence[bytes | None]) -> pa.Array:
    """The first eight bytes of each address as a number, given the addresses of each block in one piece."""
    whole = numpy.frombuffer(b"".join(piece or b"" for piece in addresses), numpy.uint8).reshape(-1, ADDRESS_LENGTH)
    heads = numpy.ascontiguousarray(whole[:, :HEAD_LENGTH]).view(">i8")
    return pa.array(heads.ravel().astype(numpy.int64), NUMBER)


def count_transactions(block: VerifiedBlock | None) -> int:
    return len(block.raw.transactions or ()) if block else 0


def build_transaction_column(blocks: Blocks, name: str) -> pa.Array:
    bodies = [block.raw.transactions or () for block in blocks if block]
    values = (TRANSACTION_VALUES[name](index, raw) for raws in bodies for index, raw in enumerate(raws))
    return pa.array(values, dict(TRANSACTION)[name])


TRANSACTION_VALUES: dict[str, Callable[[int, bytes], int | bytes]] = {
    "transaction_index": lambda index, raw: index,
    "transaction_hash": lambda index, raw: keccak256(raw),
    "type": lambda index, raw: raw[0] if raw[0] < TYPE_END else 0,
    "raw": lambda index, raw: raw,
}
LOG_KINDS = dict(LOG)
INSIDE: dict[str, Inside] = {
    Table.LOGS: Inside(count_logs, build_log_column),
    Table.TRANSACTIONS: Inside(count_transactions, build_transaction_column),
}


def join(kind: pa.DataType, parts: Sequence[tuple[int, Buffers]]) -> pa.Array:
    """One column of several blocks, given the length and the buffers of each part."""
    arrays = [pa.Array.from_buffers(kind, count, list(map(wrap, buffers))) for count, buffers in parts]
    return pa.concat_arrays(arrays) if arrays else pa.array([], kind)


def wrap(buffer: bytes | None) -> pa.Buffer | None:
    return None if buffer is None else pa.py_buffer(buffer)


# --- changes


def build_changes(steps: Sequence[StepRow]) -> pa.RecordBatch:
    """The logs of every step, and behind them a row for each step."""
    places, names = (*PLACE_COLUMNS, "step"), [name for name, _ in LOG]
    owners = pa.array(numpy.repeat(numpy.arange(len(steps)), [count_logs(step.block) for step in steps]), NUMBER)
    marks = [build_step_column(steps, name) for name in places]
    blocks = [step.block for step in steps]
    logs = [*(mark.take(owners) for mark in marks), *(build_log_column(blocks, name) for name in names)]
    marks += [pa.nulls(len(steps), kind) for _, kind in LOG]
    arrays = [pa.concat_arrays(pair) for pair in zip(logs, marks, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW[CHANGES])


def select_logs(logs: pa.RecordBatch, log_filter: LogFilter) -> pa.RecordBatch:
    """The logs that the filter wants, and rows that are no logs."""
    pairs = [("address", log_filter.addresses), *zip(TOPICS, log_filter.topics, strict=False)]
    masks = [match_column(logs[name], wanted) for name, wanted in pairs if name != "address" or wanted]
    return logs.filter(pc.or_(reduce(pc.and_, masks), pc.is_null(logs["log_index"]))) if masks else logs


def match_column(column: pa.Array, wanted: frozenset[bytes] | None) -> pa.Array:
    """Which entries are wanted; a position without wishes must still be there."""
    return pc.is_in(column, value_set=pa.array(sorted(wanted), BYTES)) if wanted else pc.is_valid(column)

"""Verified blocks as Arrow batches: rows of steps with their lists inside, and the flat rows of one table."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedBlock
from proofcast.ethereum.bloom import LogFilter
from proofcast.ethereum.columns import Buffers, LogColumns
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import ADDRESS_LENGTH, TYPE_END
from proofcast.event import Finality, Step
from proofcast.pipeline.schemas import (
    ARROW,
    BYTES,
    CHANGES,
    EVERYTHING,
    INSIDE,
    LOG,
    NUMBER,
    PLACE,
    PLACE_COLUMNS,
    RECEIPT,
    STEP,
    TOPICS,
    Table,
)

Value = int | str | bytes | None

HEAD_LENGTH = 8
MICROSECONDS = 1_000_000
APPLY = Step.APPLY.value


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


# --- steps with what is inside them


def build_steps(steps: Sequence[StepRow], inside: Sequence[str] = tuple(INSIDE)) -> pa.RecordBatch:
    """One row per step, with these lists of its block; a step without a block leaves the block's columns null."""
    blocks = [step.block for step in steps]
    kinds = dict((*PLACE, *STEP))
    columns = {name: pa.array(values, kinds[name]) for name, values in list_values(steps).items()}
    lists = {name: LIST_BUILDERS[name](blocks) for name in inside}
    return pa.RecordBatch.from_pydict(columns | lists)


def list_values(steps: Sequence[StepRow]) -> dict[str, list[Value]]:
    """The plain columns, each a list."""
    columns: dict[str, list[Value]] = {name: [] for name, _ in (*PLACE, *STEP)}
    for step in steps:
        values = describe_step(step) | (describe_block(step.block) if step.block else {})
        for name, column in columns.items():
            column.append(values.get(name))
    return columns


def describe_step(step: StepRow) -> dict[str, Value]:
    return {
        "sequence": step.sequence,
        "number": step.number,
        "block_hash": step.hash,
        "trust": step.trust.value,
        "step": step.step.value,
        "finality": step.finality.value,
        "chain_id": step.chain_id,
    }


def describe_block(block: VerifiedBlock) -> dict[str, Value]:
    return {
        "time": block.header.timestamp * MICROSECONDS,
        "parent_hash": block.header.parent_hash,
        "beneficiary": block.header.beneficiary,
        "receipts_root": block.header.receipts_root,
        "gas_limit": block.header.gas_limit,
        "gas_used": block.header.gas_used,
        "receipt_count": block.columns.receipts if block.columns else None,
        "log_count": block.columns.logs if block.columns else None,
        "header": block.raw.header,
    }


def build_receipts(blocks: Sequence[VerifiedBlock | None]) -> pa.ListArray:
    """Null where they were not fetched."""
    columns = [block.columns if block else None for block in blocks]
    facts = [concatenate(columns, "receipts", name, NUMBER) for name, _ in RECEIPT[:-1]]
    raws = [raw for block in blocks if block for raw in block.raw.receipts or ()]
    return build_lists(
        "receipts", [*facts, pa.array(raws, BYTES)], [found.receipts if found else None for found in columns]
    )


def build_logs(blocks: Sequence[VerifiedBlock | None]) -> pa.ListArray:
    """Null where no receipts were fetched."""
    columns = [block.columns if block else None for block in blocks]
    arrays = {name: concatenate(columns, "logs", name, kind) for name, kind in LOG if name != "address_head"}
    arrays["address_head"] = build_heads([found.address[-1] for found in columns if found])
    return build_lists("logs", [arrays[name] for name, _ in LOG], [found.logs if found else None for found in columns])


def build_heads(addresses: Sequence[bytes | None]) -> pa.Array:
    """The first eight bytes of each address as a number, given the addresses of each block in one piece."""
    whole = numpy.frombuffer(b"".join(piece or b"" for piece in addresses), numpy.uint8).reshape(-1, ADDRESS_LENGTH)
    heads = numpy.ascontiguousarray(whole[:, :HEAD_LENGTH]).view(">i8")
    return pa.array(heads.ravel().astype(numpy.int64), NUMBER)


def build_transactions(blocks: Sequence[VerifiedBlock | None]) -> pa.ListArray:
    """Null where the source gave no bodies."""
    bodies = [block.raw.transactions if block else None for block in blocks]
    raws = [raw for found in bodies for raw in found or ()]
    arrays = [
        pa.array([index for found in bodies for index in range(len(found or ()))], NUMBER),
        pa.array(map(keccak256, raws), BYTES),
        pa.array([raw[0] if raw[0] < TYPE_END else 0 for raw in raws], NUMBER),
        pa.array(raws, BYTES),
    ]
    return build_lists("transactions", arrays, [None if found is None else len(found) for found in bodies])


def concatenate(columns: Sequence[LogColumns | None], count: str, name: str, kind: pa.DataType) -> pa.Array:
    """One column of several blocks; `count` names the field that says how many entries each has."""
    arrays = [build_array(kind, getattr(found, count), getattr(found, name)) for found in columns if found]
    return pa.concat_arrays(arrays) if arrays else pa.array([], kind)


def build_array(kind: pa.DataType, count: int, buffers: Buffers) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [part if part is None else pa.py_buffer(part) for part in buffers])


def build_lists(name: str, arrays: Sequence[pa.Array], counts: Sequence[int | None]) -> pa.ListArray:
    """A list per step of the structs that the arrays hold one after the other."""
    structs = pa.StructArray.from_arrays(arrays, fields=list(INSIDE[name]))
    offsets = pa.array(accumulate((count or 0 for count in counts), initial=0), pa.int32())
    absent = pa.array([count is None for count in counts], pa.bool_())
    return pa.ListArray.from_arrays(offsets, structs, type=pa.list_(INSIDE[name]), mask=absent)


LIST_BUILDERS = {"receipts": build_receipts, "logs": build_logs, "transactions": build_transactions}


# --- one table

INSIDE_OF: dict[str, tuple[str, ...]] = {
    EVERYTHING: tuple(INSIDE),
    CHANGES: ("logs",),
    Table.BLOCKS: (),
    Table.RECEIPTS: ("receipts",),
    Table.LOGS: ("logs",),
    Table.TRANSACTIONS: ("transactions",),
}
"""What the rows of a table are made of."""


def build_table(steps: Sequence[StepRow], table: str, columns: Sequence[str] = ()) -> pa.RecordBatch:
    """The rows of one table, with all of its columns unless some are named."""
    rows = build_steps(steps, INSIDE_OF[table])
    names = list(columns or ARROW[table].names)
    if table in (EVERYTHING, Table.BLOCKS):
        return rows.select(names)
    if table == CHANGES:
        return flatten_changes(rows).select(names)
    applied = rows if all(step.step is Step.APPLY for step in steps) else rows.filter(pc.equal(rows["step"], APPLY))
    return applied.select(names) if table == Table.RECEIPTS else flatten(applied, table, names)


def flatten(steps: pa.RecordBatch, inside: str, names: Sequence[str]) -> pa.RecordBatch:
    """A row for each entry of the lists, with the columns of its step where they are named."""
    lists = steps[inside]
    owners, entries = pc.list_parent_indices(lists), pc.list_flatten(lists)
    arrays = [steps[name].take(owners) if name in PLACE_COLUMNS else pc.struct_field(entries, name) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def flatten_changes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The logs of every step, and behind them a row for each step."""
    lists = rows["logs"]
    owners = pc.list_parent_indices(lists)
    steps = rows.select([*PLACE_COLUMNS, "step"])
    logs = [*steps.take(owners).columns, *pc.list_flatten(lists).flatten()]
    marks = [*steps.columns, *(pa.nulls(rows.num_rows, kind) for _, kind in LOG)]
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

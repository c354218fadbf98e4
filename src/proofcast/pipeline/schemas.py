"""What is in a table, column by column.

Every row begins with its place: `sequence`, the number of the step that brought it; the block's number, hash and time;
and the trust word of the block. A block that a reorg removes keeps its rows, and an `undo` row is appended to `blocks`;
a block that comes back is applied again under a new sequence, with rows of its own. So (`sequence`, `block_hash`) ties
the rows of all tables to one row of `blocks`, which is written last: rows without it belong to a batch not whole yet.

Numbers of 256 bits do not fit any column type and stay bytes or, where a person reads them, decimal text.
"""

from enum import StrEnum

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType


class Table(StrEnum):
    RECEIPTS = "receipts"
    LOGS = "logs"
    TRANSACTIONS = "transactions"
    EVENTS = "events"
    BLOCKS = "blocks"
    """Last here, because it is written last."""


TASKS = "tasks"
"""A row per piece of work, to be verified by whoever writes it: one verified read for all tables."""

CHANGES = "changes"
"""A row per log that is applied or undone, and one without a log per step: what a sink needs that delivers logs."""

NUMBER, TEXT, BYTES = pa.int64(), pa.string(), pa.binary()
"""All that Spark takes without conversion: it refuses other widths, and bytes of fixed length."""

Fields = list[tuple[str, pa.DataType]]

PLACE: Fields = [
    ("sequence", NUMBER),
    ("number", NUMBER),
    ("block_hash", BYTES),
    ("time", pa.timestamp("us", tz="UTC")),
    ("trust", TEXT),
]
STEP: Fields = [
    ("step", TEXT),
    ("finality", TEXT),
    ("chain_id", NUMBER),
    ("parent_hash", BYTES),
    ("beneficiary", BYTES),
    ("receipts_root", BYTES),
    ("gas_limit", NUMBER),
    ("gas_used", NUMBER),
    ("receipt_count", NUMBER),
    ("log_count", NUMBER),
    ("header", BYTES),
]
RECEIPT: Fields = [
    ("type", NUMBER),
    ("status", NUMBER),
    ("cumulative_gas", NUMBER),
    ("log_count", NUMBER),
    ("raw", BYTES),
]
TOPICS = ("topic0", "topic1", "topic2", "topic3")
LOG_PLACE: Fields = [
    ("transaction_index", NUMBER),
    ("log_index", NUMBER),
    ("address", BYTES),
    ("address_head", NUMBER),
]
"""`address_head`, the first eight bytes, is what files are clustered by: Delta keeps no statistics of bytes."""
LOG: Fields = [*LOG_PLACE, *((topic, BYTES) for topic in TOPICS), ("data", BYTES)]
TRANSACTION: Fields = [("transaction_index", NUMBER), ("transaction_hash", BYTES), ("type", NUMBER), ("raw", BYTES)]
EVENT: Fields = [
    *LOG_PLACE,
    ("abi", TEXT),
    ("name", TEXT),
    ("signature", TEXT),
    ("arguments", pa.map_(TEXT, TEXT)),
    ("fault", TEXT),
]
ARROW = {
    TASKS: pa.schema([("task", BYTES)]),
    CHANGES: pa.schema([*PLACE, ("step", TEXT), *LOG]),
    Table.BLOCKS: pa.schema([*PLACE, *STEP]),
    Table.RECEIPTS: pa.schema([*PLACE, ("receipts", pa.list_(pa.struct(RECEIPT)))]),
    Table.LOGS: pa.schema([*PLACE, *LOG]),
    Table.TRANSACTIONS: pa.schema([*PLACE, *TRANSACTION]),
    Table.EVENTS: pa.schema([*PLACE, *EVENT]),
}

PLACE_COLUMNS = tuple(name for name, _ in PLACE)
CLUSTERED_BY = {
    Table.RECEIPTS: ("number",),
    Table.LOGS: ("number", "address_head"),
    Table.TRANSACTIONS: ("number",),
    Table.EVENTS: ("number", "address_head"),
    Table.BLOCKS: ("number",),
}


def get_spark_schema(table: str, columns: tuple[str, ...] = ()) -> StructType:
    """The columns of a table as Spark has them; all of them unless named."""
    schema = ARROW[table]
    return convert_schema(pa.schema([schema.field(name) for name in columns or schema.names]))


def convert_schema(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema)

"""Parquet files of the tables, written by the worker that verified their rows.

Delta Lake's own writer would take every row through the JVM, one by one; here a worker writes the columns that it has
in its hands, and says what it wrote. A file counts once it is committed (`tables.py`): one that never was, because its
task was repeated or its run cut off, is not read by anybody and goes away with `compact`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FileSystem, LocalFileSystem
from pyarrow.parquet import write_table
from pyspark.sql import Row

from proofcast.pipeline.decoding import Abi, decode_all
from proofcast.pipeline.io.failures import carried
from proofcast.pipeline.io.reading import cut, unpack_tasks
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.rows import StepRow, build_table
from proofcast.pipeline.schemas import ARROW, BYTES, NUMBER, TEXT, Table

FILES = pa.schema(
    [
        ("table", TEXT),
        ("path", TEXT),
        ("bytes", NUMBER),
        ("modified_ms", NUMBER),
        ("statistics", TEXT),
        ("sequence", NUMBER),
        ("number", NUMBER),
        ("block_hash", BYTES),
    ]
)
COUNTED = ("sequence", "number", "address_head")
"""Columns whose least and greatest value a file's statistics have, for readers to skip the file by."""
COMPRESSION = "zstd"
ARROW_SCHEMES = {"s3a": "s3", "abfss": "abfs"}
"""What Hadoop calls otherwise than Arrow."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What travels to workers."""

    folder: str
    ends: Mapping[Table, Offset | None]
    """The tables to write, and how far each is already: a run may have been cut off after writing some of them."""
    abis: Sequence[Abi]


@dataclass(frozen=True, slots=True)
class TableFile:
    table: Table
    path: str
    """Within the table's folder."""
    bytes: int
    modified_ms: int
    statistics: str
    """In the JSON of Delta Lake."""
    end: Offset
    """The place of its last row."""


# --- in a worker


def write_tasks(batches: Iterable[pa.RecordBatch], request: WriteRequest) -> Iterator[pa.RecordBatch]:
    """Do every task; a row for each file written."""
    with carried():
        for steps in unpack_tasks(batches):
            yield pa.RecordBatch.from_pylist(write_steps(steps, request), schema=FILES)


def write_steps(steps: Iterator[StepRow], request: WriteRequest) -> list[dict[str, object]]:
    parts: dict[Table, list[pa.RecordBatch]] = {table: [] for table in request.ends}
    for chunk in cut(steps):
        for table, rows in build_tables(chunk, request):
            parts[table].append(rows)
    wholes = {table: pa.Table.from_batches(batches, ARROW[table]) for table, batches in parts.items()}
    return [write_file(request.folder, table, rows) for table, rows in wholes.items() if rows.num_rows]


def build_tables(steps: Sequence[StepRow], request: WriteRequest) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows that each table does not have yet."""

    @cache
    def build(table: Table, end: Offset | None) -> pa.RecordBatch:
        if table is Table.EVENTS:
            return decode_all(build(Table.LOGS, end), request.abis)
        return build_table([step for step in steps if end is None or is_after(step, end)], table)

    for table, end in request.ends.items():
        yield table, build(table, end)


def is_after(step: StepRow, end: Offset) -> bool:
    return (step.sequence, step.number) > (end.sequence, end.number)


def write_file(folder: str, table: Table, rows: pa.Table) -> dict[str, object]:
    system, base = open_folder(folder)
    path = f"part-{uuid4()}.{COMPRESSION}.parquet"
    write_table(rows, f"{base}/{table}/{path}", filesystem=system, compression=COMPRESSION)
    written = system.get_file_info(f"{base}/{table}/{path}")
    last = rows.select(["sequence", "number", "block_hash"]).slice(rows.num_rows - 1).to_pylist()[0]
    facts = {"bytes": written.size, "modified_ms": (written.mtime_ns or 0) // 1_000_000}
    return {"table": table.value, "path": path, "statistics": count(rows), **facts, **last}


def count(rows: pa.Table) -> str:
    bounds = {name: pc.min_max(rows[name]).as_py() for name in COUNTED if name in rows.column_names}
    return json.dumps(
        {
            "numRecords": rows.num_rows,
            "minValues": {name: found["min"] for name, found in bounds.items()},
            "maxValues": {name: found["max"] for name, found in bounds.items()},
            "nullCount": dict.fromkeys(bounds, 0),
        }
    )


def open_folder(folder: str) -> tuple[FileSystem, str]:
    scheme, separator, place = folder.partition("://")
    if not separator:
        return LocalFileSystem(), folder
    opened: tuple[FileSystem, str] = FileSystem.from_uri(f"{ARROW_SCHEMES.get(scheme, scheme)}://{place}")
    return opened


# --- on the driver


def parse_file(row: Row) -> TableFile:
    end = Offset(row["sequence"], row["number"], bytes(row["block_hash"]))
    return TableFile(Table(row["table"]), row["path"], row["bytes"], row["modified_ms"], row["statistics"], end)

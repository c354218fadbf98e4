"""A store in one file, to be put back into an empty store of either kind.

Lines of JSON, compressed: first the schema's version, then every row as `[table, values]`, bytes as `{"b": base64}`.
"""

import base64
import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import orjson

from proofcast.broker.io.store.database import Row, Transaction
from proofcast.broker.io.store.schema import MIGRATIONS
from proofcast.errors import InvalidInput, InvalidRequest, Reason

TABLES = ("subscription", "pending", "given", "dead_letter", "attempt", "api_key", "request")
"""In an order in which nothing refers to what comes later."""
FORMAT = "proofcast-store"
PRIVATE = 0o600
"""It holds the keys that webhooks are signed with."""


def write_backup(transaction: Transaction, path: Path) -> int:
    """How many rows there were; the file appears when it is whole."""
    transaction.freeze()
    partial, count = path.with_name(path.name + ".partial"), 0
    with (
        open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb") as raw,
        gzip.open(raw, "wb") as file,
    ):
        file.write(orjson.dumps({"format": FORMAT, "version": len(MIGRATIONS)}) + b"\n")
        for table in TABLES:
            for row in transaction.read(f"SELECT * FROM {table}"):
                file.write(orjson.dumps([table, [encode_value(value) for value in row]]) + b"\n")
                count += 1
    partial.replace(path)
    return count


def read_backup(transaction: Transaction, path: Path) -> int:
    """How many rows were put back, all or none."""
    if any(transaction.read(f"SELECT count(*) FROM {table}") != [(0,)] for table in TABLES):
        raise InvalidRequest(
            Reason.ALREADY_EXISTS, "the store is not empty", hint="restore into a new file or an empty database"
        )
    count = 0
    for table, row in iterate_rows(path):
        transaction.change(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        count += 1
    transaction.change("UPDATE subscription SET owner = '', held_until = 0")
    transaction.change("UPDATE pending SET is_repeated = 1")
    return count


def iterate_rows(path: Path) -> Iterator[tuple[str, Row]]:
    try:
        with gzip.open(path, "rb") as file:
            head = orjson.loads(file.readline())
            if head != {"format": FORMAT, "version": len(MIGRATIONS)}:
                raise refuse(path, f"it begins with `{orjson.dumps(head).decode()[:80]}`")
            for line in file:
                table, values = orjson.loads(line)
                if table not in TABLES:
                    raise refuse(path, f"it names a table `{ascii(table)[:40]}`")
                yield table, tuple(decode_value(value) for value in values)
    except (OSError, EOFError, ValueError, TypeError) as error:
        raise refuse(path, str(error)) from error


def encode_value(value: object) -> object:
    return {"b": base64.b64encode(value).decode()} if isinstance(value, bytes | memoryview) else value


def decode_value(value: object) -> object:
    return base64.b64decode(value["b"], validate=True) if isinstance(value, dict) else value


def refuse(path: Path, fault: str) -> InvalidInput:
    return InvalidInput(
        Reason.MALFORMED, f"`{path}` is no backup of this version (`{fault}`)", hint="nothing of it was restored"
    )

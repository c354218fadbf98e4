"""The device's state in SQLite, encrypted at rest.

    password --argon2id(salt)--> wrapping key --AES-256-GCM--> data key --> every name and value

A row is found by a keyed hash of its name and holds nonce | AES-256-GCM(name length, name, value), so that the file
tells how many things a device knows and how long they are, and nothing else. `write` is one transaction that is durable
when it returns: what must not be forgotten is stored before the bytes that depend on it leave the device.
"""

import hashlib
import hmac
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from nacl.pwhash import argon2id

from proofcast.errors import InvalidInput, InvalidRequest, Reason

KEY_BYTES = 32
NONCE_BYTES = 12
ID_BYTES = 16
NAME_LENGTH_BYTES = 2
WRAPPED = b"proofcast/groups/vault/1\0"
SCHEMA = """
create table head (salt blob not null, wrapped blob not null) strict;
create table rows (id blob primary key, sealed blob not null) strict, without rowid;
"""


class Vault:
    """Named values; open one with `create_vault` or `open_vault`."""

    def __init__(self, database: sqlite3.Connection, key: bytes) -> None:
        self.database = database
        self.cipher = AESGCM(key)
        self.name_key = hmac.digest(key, b"names", hashlib.sha256)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.database.close()

    def find(self, name: str) -> bytes | None:
        row = self.database.execute("select sealed from rows where id = ?", [self.compute_id(name)]).fetchone()
        return self.unseal(self.compute_id(name), row[0])[1] if row else None

    def read_all(self) -> Iterator[tuple[str, bytes]]:
        for identity, sealed in self.database.execute("select id, sealed from rows"):
            yield self.unseal(identity, sealed)

    def write(self, changes: Mapping[str, bytes | None]) -> None:
        """Store and, where the value is None, forget; all or nothing, durable on return."""
        kept = [self.seal(name, value) for name, value in changes.items() if value is not None]
        gone = [(self.compute_id(name),) for name, value in changes.items() if value is None]
        with self.database:
            self.database.execute("begin immediate")
            self.database.executemany("insert or replace into rows values (?, ?)", kept)
            self.database.executemany("delete from rows where id = ?", gone)

    def compute_id(self, name: str) -> bytes:
        return hmac.digest(self.name_key, name.encode(), hashlib.sha256)[:ID_BYTES]

    def seal(self, name: str, value: bytes) -> tuple[bytes, bytes]:
        """The row of a record."""
        identity, nonce, encoded = self.compute_id(name), os.urandom(NONCE_BYTES), name.encode()
        plain = len(encoded).to_bytes(NAME_LENGTH_BYTES, "big") + encoded + value
        return identity, nonce + self.cipher.encrypt(nonce, plain, identity)

    def unseal(self, identity: bytes, sealed: bytes) -> tuple[str, bytes]:
        try:
            plain = self.cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], identity)
        except InvalidTag:
            message = "the device's state was changed by someone without its password"
            raise InvalidInput(Reason.MALFORMED, message, hint="restore the file from a backup") from None
        end = NAME_LENGTH_BYTES + int.from_bytes(plain[:NAME_LENGTH_BYTES], "big")
        return plain[NAME_LENGTH_BYTES:end].decode(), plain[end:]


def create_vault(path: Path, password: str) -> Vault:
    if path.exists():
        message = f"there is a device at `{path}` already"
        raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="name another one with `--device`")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    database, key, salt, nonce = connect(path), os.urandom(KEY_BYTES), os.urandom(argon2id.SALTBYTES), os.urandom(12)
    wrapped = nonce + AESGCM(derive_key(password, salt)).encrypt(nonce, key, WRAPPED)
    database.executescript(SCHEMA)
    database.execute("insert into head values (?, ?)", [salt, wrapped])
    return Vault(database, key)


def open_vault(path: Path, password: str) -> Vault:
    if not path.exists():
        hint = "make one with `proofcast device new`, or name another with `--device`"
        raise InvalidRequest(Reason.BAD_ARGUMENT, f"there is no device at `{path}`", hint=hint)
    try:
        return Vault(*unlock(path, password))
    except (sqlite3.DatabaseError, TypeError):
        raise InvalidInput(Reason.MALFORMED, f"`{path}` holds no device", hint="restore it from a backup") from None
    except InvalidTag:
        hint = "give the one it was made with in `PROOFCAST_PASSWORD`"
        raise InvalidRequest(Reason.BAD_KEY, f"the password does not open `{path}`", hint=hint) from None


def unlock(path: Path, password: str) -> tuple[sqlite3.Connection, bytes]:
    """The open file and the key that its password leads to."""
    with ExitStack() as failing:
        database = failing.enter_context(closing(connect(path)))
        salt, wrapped = database.execute("select salt, wrapped from head").fetchone()
        key = AESGCM(derive_key(password, salt)).decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], WRAPPED)
        failing.pop_all()
    return database, key


def connect(path: Path) -> sqlite3.Connection:
    """`isolation_level=None`: transactions begin where we say so."""
    with ExitStack() as failing:
        database = failing.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
        for setting in ("journal_mode = wal", "synchronous = full", "secure_delete = on"):
            database.execute(f"pragma {setting}")
        failing.pop_all()
    return database


def derive_key(password: str, salt: bytes) -> bytes:
    memory, rounds = argon2id.MEMLIMIT_INTERACTIVE, argon2id.OPSLIMIT_INTERACTIVE
    return argon2id.kdf(KEY_BYTES, password.encode(), salt, memlimit=memory, opslimit=rounds)

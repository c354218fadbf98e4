"""The device's state in SQLite, encrypted at rest.

    password --argon2id(salt)--> wrapping key --AES-256-GCM--> data key --> every name and value

A row is found by a keyed hash of its name and holds nonce | AES-256-GCM(name length, name, value), so that the file
tells how many things a device knows and how long they are, and nothing else. `write` is one transaction that is durable
when it returns: what must not be forgotten is stored before the bytes that depend on it leave the device.

It appends all changes to a journal as one entry, because a row each would touch a page of the file each. Now and then,
and when the vault is closed, the journal is folded into the rows and wiped.
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
from proofcast.groups.records import Changes, encode_changes, parse_changes

KEY_BYTES = 32
NONCE_BYTES = 12
ID_BYTES = 16
NAME_LENGTH_BYTES = 2
WRAPPED = b"proofcast/groups/vault/1\0"
SCHEMA = """
create table head (salt blob not null, wrapped blob not null) strict;
create table rows (id blob primary key, sealed blob not null) strict, without rowid;
create table journal (number integer primary key, sealed blob not null) strict;
"""
JOURNAL = b"journal"
EMPTY_BYTES = 28
"""Of an entry without changes: nonce and tag."""
JOURNAL_BYTES_MAX = 1 << 20
JOURNAL_ENTRIES_MAX = 128
"""Folded beyond either: a millisecond or two. What is folded holds no earlier states of ratchets."""
WAL_PAGES = 100
"""Written back beyond it: SQLite then begins its log at the front again, and to sync what overwrites takes half as long
as to sync what lengthens a file."""


class Vault:
    """Named values; open one with `create_vault` or `open_vault`."""

    def __init__(self, database: sqlite3.Connection, key: bytes) -> None:
        self.database = database
        self.cipher = AESGCM(key)
        self.name_key = hmac.digest(key, b"names", hashlib.sha256)
        query = "select count(*), coalesce(sum(length(sealed)), 0) from journal where length(sealed) > ?"
        self.journal_entries, self.journal_bytes = database.execute(query, [EMPTY_BYTES]).fetchone()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None and self.journal_bytes:
            self.fold()
        self.database.close()

    def find(self, name: str) -> bytes | None:
        recent = self.read_journal()
        if name in recent:
            return recent[name]
        row = self.database.execute("select sealed from rows where id = ?", [self.compute_id(name)]).fetchone()
        return self.unseal(self.compute_id(name), row[0])[1] if row else None

    def read_all(self) -> Iterator[tuple[str, bytes]]:
        recent = self.read_journal()
        for identity, sealed in self.database.execute("select id, sealed from rows"):
            name, value = self.unseal(identity, sealed)
            if name not in recent:
                yield name, value
        yield from ((name, value) for name, value in recent.items() if value is not None)

    def write(self, changes: Mapping[str, bytes | None]) -> None:
        """Store and, where the value is None, forget; all or nothing, durable on return."""
        with self.database:
            self.database.execute("begin immediate")
            self.append(changes)
        if self.journal_bytes > JOURNAL_BYTES_MAX or self.journal_entries > JOURNAL_ENTRIES_MAX:
            self.fold()

    # --- the journal

    def append(self, changes: Mapping[str, bytes | None]) -> int:
        """Inside a transaction; the entry's number, which no other ever had."""
        (last,) = self.database.execute("select coalesce(max(number), 0) from journal").fetchone()
        sealed = self.encrypt(encode_changes(changes), name_entry(last + 1))
        self.database.execute("insert into journal values (?, ?)", [last + 1, sealed])
        self.journal_bytes += len(sealed)
        self.journal_entries += 1
        return int(last) + 1

    def read_journal(self) -> Changes:
        changes: Changes = {}
        for number, sealed in self.database.execute("select number, sealed from journal order by number"):
            changes |= parse_changes(self.decrypt(sealed, name_entry(number)))
        return changes

    def fold(self) -> None:
        """Move what the journal says into the rows; an empty entry keeps its place in the numbers."""
        with self.database:
            self.database.execute("begin immediate")
            changes = self.read_journal()
            kept = [self.seal(name, value) for name, value in changes.items() if value is not None]
            gone = [(self.compute_id(name),) for name, value in changes.items() if value is None]
            self.database.executemany("insert or replace into rows values (?, ?)", kept)
            self.database.executemany("delete from rows where id = ?", gone)
            self.database.execute("delete from journal where number < ?", [self.append({})])
        self.journal_entries = self.journal_bytes = 0

    # --- sealing

    def compute_id(self, name: str) -> bytes:
        return hmac.digest(self.name_key, name.encode(), hashlib.sha256)[:ID_BYTES]

    def seal(self, name: str, value: bytes) -> tuple[bytes, bytes]:
        """The row of a record."""
        identity, encoded = self.compute_id(name), name.encode()
        plain = len(encoded).to_bytes(NAME_LENGTH_BYTES, "big") + encoded + value
        return identity, self.encrypt(plain, identity)

    def unseal(self, identity: bytes, sealed: bytes) -> tuple[str, bytes]:
        plain = self.decrypt(sealed, identity)
        end = NAME_LENGTH_BYTES + int.from_bytes(plain[:NAME_LENGTH_BYTES], "big")
        return plain[NAME_LENGTH_BYTES:end].decode(), plain[end:]

    def encrypt(self, plain: bytes, place: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self.cipher.encrypt(nonce, plain, place)

    def decrypt(self, sealed: bytes, place: bytes) -> bytes:
        try:
            return self.cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], place)
        except InvalidTag:
            message = "the device's state was changed by someone without its password"
            raise InvalidInput(Reason.MALFORMED, message, hint="restore the file from a backup") from None


def name_entry(number: int) -> bytes:
    """The place of a journal's entry, under its seal."""
    return JOURNAL + number.to_bytes(8, "big")


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
        settings = "journal_mode = wal", "synchronous = full", "secure_delete = on", f"wal_autocheckpoint = {WAL_PAGES}"
        for setting in settings:
            database.execute(f"pragma {setting}")
        failing.pop_all()
    return database


def derive_key(password: str, salt: bytes) -> bytes:
    memory, rounds = argon2id.MEMLIMIT_INTERACTIVE, argon2id.OPSLIMIT_INTERACTIVE
    return argon2id.kdf(KEY_BYTES, password.encode(), salt, memlimit=memory, opslimit=rounds)

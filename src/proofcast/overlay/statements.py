"""The filter table: who below this peer wants what under which key, and copies of other peers' tables.

Rows are kept by rendezvous key, because an event travels the tree of each of its attributes separately, and by the peer
that made the statement. The paper swaps two tables every 2t; here a row carries the number of the table it was last
renewed in, which is the same: a swap drops the rows that the table now ending has not seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from proofcast.overlay.messages import Subscribe
from proofcast.overlay.settings import CHILDREN_MAX, STATEMENTS_MAX


@dataclass(slots=True)
class Row:
    statement: Subscribe
    generation: int


Rows = dict[bytes, Row]
"""By the public key of the peer that made the statement."""


@dataclass(slots=True)
class Copy:
    """Part of another peer's table."""

    is_rendezvous: bool
    rows: Rows = field(default_factory=dict)


class Statements:
    def __init__(self) -> None:
        self.tables: dict[int, Rows] = {}
        self.copies: dict[int, dict[bytes, Copy]] = {}
        """By key, then by the public key of the table's owner."""
        self._generation = 0
        self._count = 0

    def put(self, statement: Subscribe) -> Subscribe | None:
        """Enter a child's statement; returns the one it replaces, which is itself where it was only renewed."""
        return self._put(self.tables.setdefault(statement.interest.key, {}), statement)

    def put_copy(self, owner: bytes, statement: Subscribe, *, is_rendezvous: bool) -> None:
        copy = self.copies.setdefault(statement.interest.key, {}).setdefault(owner, Copy(is_rendezvous))
        copy.is_rendezvous = is_rendezvous
        self._put(copy.rows, statement)

    def is_full(self, key: int) -> bool:
        return self._count >= STATEMENTS_MAX or len(self.tables.get(key, ())) >= CHILDREN_MAX

    def _put(self, rows: Rows, statement: Subscribe) -> Subscribe | None:
        origin = statement.interest.origin.public_key
        row = rows.get(origin)
        if row is None:
            self._count += 1
            rows[origin] = Row(statement, self._generation)
            return None
        before = row.statement
        if statement.interest.version >= before.interest.version:
            row.statement, row.generation = statement, self._generation
        return before

    def get_children(self, key: int) -> list[Subscribe]:
        """The statements in force of this peer's own table."""
        return [row.statement for row in self.tables.get(key, {}).values() if not row.statement.interest.is_withdrawal]

    def find_copy(self, owner: bytes, key: int) -> list[Subscribe] | None:
        copy = self.copies.get(key, {}).get(owner)
        if copy is None:
            return None
        return [row.statement for row in copy.rows.values() if not row.statement.interest.is_withdrawal]

    def iterate_inherited(self, key: int) -> Iterator[tuple[bytes, list[Subscribe]]]:
        """(owner, statements) of the copies that rendezvous of the key left here."""
        for owner, copy in self.copies.get(key, {}).items():
            if copy.is_rendezvous:
                yield owner, [row.statement for row in copy.rows.values() if not row.statement.interest.is_withdrawal]

    def swap(self) -> set[int]:
        """Drop what was not renewed; returns the keys under which a child is gone."""
        changed = {key for key, rows in self.tables.items() if self._drop_stale(rows)}
        for copies in self.copies.values():
            for owner in [owner for owner, copy in copies.items() if self._drop_stale(copy.rows) and not copy.rows]:
                del copies[owner]
        self.tables = {key: rows for key, rows in self.tables.items() if rows}
        self.copies = {key: copies for key, copies in self.copies.items() if copies}
        self._generation += 1
        return changed

    def _drop_stale(self, rows: Rows) -> bool:
        stale = [origin for origin, row in rows.items() if row.generation < self._generation]
        for origin in stale:
            del rows[origin]
        self._count -= len(stale)
        return bool(stale)

    def __len__(self) -> int:
        return self._count

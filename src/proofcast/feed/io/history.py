"""The way from a view to the present, read from the feed: journal and outbox together, in one snapshot."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from proofcast.chain.segment import BlockId
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.ethereum.receipt import Log
from proofcast.event import Finality, Step
from proofcast.feed.io.database import Database
from proofcast.feed.io.sqlite import COLUMNS, parse_step
from proofcast.feed.journal import JournalState, compute_state
from proofcast.feed.outbox import Row, parse_row
from proofcast.feed.view import WHOLE_BLOCK, Run, View, Way

END_OF_TOPICS = b"\xff" * 33
"""Behind every continuation of some topics by one more."""
MOVES_MAX = 1_024
"""Of one way: read in milliseconds, so that one who is far behind delays nobody."""


class UnknownBlock(InvalidRequest):
    """A view names a block that was never journalled here; another broker may have seen it."""


class History:
    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)
        self._state: JournalState | None = None
        """As of the last step that was looked at: what was after a step never changes, and folding it takes time."""

    def close(self) -> None:
        self._database.close()

    def get_version(self) -> int:
        """Another number whenever somebody else has written; asking costs microseconds, reading does not."""
        return self._database.get_version()

    def get_chain_id(self) -> int:
        with self._database.snapshot() as connection:
            return read_chain(connection)[0]

    def get_oldest(self) -> View:
        """Behind the block from where everything is here."""
        with self._database.snapshot() as connection:
            return View(read_beginning(connection)[0], WHOLE_BLOCK)

    def get_newest(self, level: Finality) -> View:
        with self._snapshot() as snapshot:
            return View(snapshot.get_target(level), WHOLE_BLOCK)

    def find_way(self, view: View, level: Finality, limit: int = MOVES_MAX) -> Way:
        """At most `limit` moves from the view towards the block that is settled at this level."""
        with self._snapshot() as snapshot:
            target, runs = snapshot.get_target(level), list[Run]()
            verify_level(view, level, target)
            while limit > 0 and snapshot.is_off(view, target):
                undone = snapshot.undo(view, limit)
                if not undone.records:
                    view = View(snapshot.get_parent(view.block), WHOLE_BLOCK)
                    continue
                runs.append(undone)
                limit -= len(undone.records)
                view = undone.moves[-1].view
            for applied in snapshot.apply(view, target, limit):
                runs.append(applied)
                limit -= len(applied.records)
                view = View(applied.block, applied.records[-1].log_index)
            end = view if limit == 0 else View(target, WHOLE_BLOCK)
            return Way(tuple(runs), end, limit > 0, target, snapshot.state.finalized)

    def find_before_time(self, timestamp: int) -> View:
        """The view that lacks everything of this second and later, and nothing else that was matched."""
        with self._snapshot() as snapshot:
            row = snapshot.connection.execute(
                "SELECT number FROM outbox WHERE timestamp >= ? AND step = 'apply' ORDER BY sequence LIMIT 1",
                (timestamp,),
            ).fetchone()
            before = snapshot.find_canonical(row[0] - 1) if row else snapshot.state.head
            return View(before or snapshot.oldest, WHOLE_BLOCK)

    def find_before_log(self, address: bytes, topics: bytes) -> View | None:
        """The view that lacks a log, found by how its topics begin, and what came after; None where it is not here."""
        with self._snapshot() as snapshot:
            rows = snapshot.connection.execute(
                "SELECT number, hash, log_index FROM outbox INDEXED BY outbox_topics WHERE topics >= ? AND topics < ?"
                " AND address = ? AND step = 'apply' AND sequence <= ?",
                (topics, topics + END_OF_TOPICS, address, snapshot.state.sequence),
            ).fetchall()
            for number, block_hash, log_index in rows:
                block = BlockId(number, block_hash)
                if snapshot.find_canonical(number) == block:
                    return View(block, log_index - 1)
        return None

    def list_logs(self, address: bytes, topics: bytes) -> list[Log]:
        """Every log of a contract whose topics begin so, whichever branch it is on; each once per application."""
        with self._database.snapshot() as connection:
            rows = connection.execute(
                "SELECT * FROM outbox INDEXED BY outbox_topics WHERE topics >= ? AND topics < ? AND address = ?"
                " AND step = 'apply'",
                (topics, topics + END_OF_TOPICS, address),
            ).fetchall()
        return [parse_row(Row._make(row), 0).log for row in rows]

    def list_step(self, sequence: int, address: bytes) -> list[Row]:
        """The logs of a contract that one step applied or undid."""
        with self._database.snapshot() as connection:
            found = connection.execute(
                "SELECT * FROM outbox WHERE sequence = ? AND address = ? ORDER BY log_index", (sequence, address)
            )
            return list(map(Row._make, found))

    def knows(self, block: BlockId) -> bool:
        with self._snapshot() as snapshot:
            return snapshot.knows(block)

    def get_known(self, block: BlockId) -> BlockId:
        """The block itself where it was ever applied here; refused where not."""
        if not self.knows(block):
            raise refuse_unknown(block)
        return block

    def find_block(self, number: int) -> BlockId | None:
        """The canonical block of this height; None above the head and below the checkpoint."""
        with self._snapshot() as snapshot:
            return snapshot.find_canonical(number)

    @contextmanager
    def _snapshot(self) -> Iterator["Snapshot"]:
        with self._database.snapshot() as connection:
            chain_id, checkpoint = read_chain(connection)
            row = connection.execute("SELECT sequence FROM delivered").fetchone()
            sequence = row[0] if row else 0
            state = self._state
            if state is None or state.sequence != sequence:
                state = self._state = read_state(connection, checkpoint, sequence)
            yield Snapshot(connection, chain_id, *read_beginning(connection), state)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The feed at one moment, up to the last step whose logs are all in the outbox."""

    connection: sqlite3.Connection
    chain_id: int
    oldest: BlockId
    """Everything behind it is here."""
    oldest_sequence: int
    state: JournalState

    def get_target(self, level: Finality) -> BlockId:
        state = self.state
        return {Finality.LATEST: state.head, Finality.SAFE: state.safe, Finality.FINALIZED: state.finalized}[level]

    def find_canonical(self, number: int) -> BlockId | None:
        above = number - self.state.finalized.number
        if above > 0:
            return self.state.links[above - 1].id if above <= len(self.state.links) else None
        if number == self.oldest.number:
            return self.oldest
        row = self.connection.execute(
            "SELECT hash FROM step WHERE number = ? AND step = 'apply' AND sequence <= ?"
            " ORDER BY sequence DESC LIMIT 1",
            (number, self.state.sequence),
        ).fetchone()
        return BlockId(number, row[0]) if row else None

    def is_off(self, view: View, target: BlockId) -> bool:
        """Must something be undone first?"""
        return view.block.number > target.number or self.find_canonical(view.block.number) != view.block

    def undo(self, view: View, limit: int) -> Run:
        """Take back the logs of the view's block, newest first."""
        sequence, _ = self._get_applied(view.block)
        rows = self._read_rows("sequence = ? AND log_index <= ?", (sequence, view.log_index), "DESC", limit)
        return Run(Step.UNDO, view.block, self._count_turns(view.block)[0], self.chain_id, rows)

    def apply(self, view: View, target: BlockId, limit: int) -> Iterator[Run]:
        """Go on to the target, oldest first; the view is canonical."""
        sequence = self.oldest_sequence if view.block == self.oldest else self._get_applied(view.block)[0]
        after = (sequence, view.log_index)
        while limit > 0:
            wanted = "(sequence, log_index) > (?, ?) AND step = 'apply' AND number <= ? AND sequence <= ?"
            rows = self._read_rows(wanted, (*after, target.number, self.state.sequence), "ASC", limit)
            if not rows:
                return
            after = (rows[-1].sequence, rows[-1].log_index)
            for step_sequence, group in groupby(rows, attrgetter("sequence")):
                records = list(group)
                block = BlockId(records[0].number, records[0].block_hash)
                turn, last = self._count_turns(block)
                if last == step_sequence and self.find_canonical(block.number) == block:
                    limit -= len(records)
                    yield Run(Step.APPLY, block, turn, self.chain_id, records)

    def knows(self, block: BlockId) -> bool:
        """Was it ever applied here?"""
        return block == self.oldest or self._find_applied(block) is not None

    def get_parent(self, block: BlockId) -> BlockId:
        return BlockId(block.number - 1, self._get_applied(block)[1])

    def _get_applied(self, block: BlockId) -> tuple[int, bytes]:
        """Sequence of the last step that applied the block, and its parent's hash."""
        found = self._find_applied(block)
        if found is None:
            raise refuse_unknown(block)
        return found

    def _find_applied(self, block: BlockId) -> tuple[int, bytes] | None:
        row: tuple[int, bytes] | None = self.connection.execute(
            "SELECT sequence, parent FROM step WHERE number = ? AND hash = ? AND step = 'apply' AND sequence <= ?"
            " ORDER BY sequence DESC LIMIT 1",
            (*block, self.state.sequence),
        ).fetchone()
        return row

    def _count_turns(self, block: BlockId) -> tuple[int, int]:
        """How often the block was applied, and the sequence of the last time."""
        found: tuple[int, int] = self.connection.execute(
            "SELECT count(*), max(sequence) FROM step"
            " WHERE number = ? AND hash = ? AND step = 'apply' AND sequence <= ?",
            (*block, self.state.sequence),
        ).fetchone()
        return found

    def _read_rows(self, wanted: str, values: tuple[int, ...], order: str, limit: int) -> list[Row]:
        found = self.connection.execute(
            f"SELECT * FROM outbox WHERE {wanted} ORDER BY sequence {order}, log_index {order} LIMIT ?",
            (*values, limit),
        )
        return list(map(Row._make, found))


def refuse_unknown(block: BlockId) -> UnknownBlock:
    return UnknownBlock(
        Reason.BAD_ARGUMENT,
        f"block `{block}` was never seen here",
        hint="start from a block, a time or `oldest`; or ask the broker that gave the cursor",
    )


def read_chain(connection: sqlite3.Connection) -> tuple[int, BlockId]:
    row = connection.execute("SELECT chain_id, checkpoint_number, checkpoint_hash FROM chain").fetchone()
    if row is None:
        raise Unavailable(
            Reason.NOT_YET, "nothing is journalled yet", hint="start what follows the chain, then try again"
        )
    return row[0], BlockId(row[1], row[2])


def read_beginning(connection: sqlite3.Connection) -> tuple[BlockId, int]:
    """The block behind which everything is here, and the sequence of its step: the checkpoint's is 0."""
    row = connection.execute("SELECT number, hash, sequence FROM beginning").fetchone()
    return (BlockId(row[0], row[1]), row[2]) if row else (read_chain(connection)[1], 0)


def read_state(connection: sqlite3.Connection, checkpoint: BlockId, sequence: int) -> JournalState:
    """The state after step `sequence`, folded from the steps above the block that was finalized then."""
    found = connection.execute(
        "SELECT number, hash FROM step WHERE step = 'final' AND finality = 'finalized' AND sequence <= ?"
        " ORDER BY sequence DESC LIMIT 1",
        (sequence,),
    ).fetchone()
    finalized = BlockId(*found) if found else checkpoint
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM step INDEXED BY step_number WHERE number > ? AND sequence <= ? ORDER BY sequence",
        (finalized.number, sequence),
    ).fetchall()
    return replace(compute_state(finalized, map(parse_step, rows)), sequence=sequence)


def verify_level(view: View, level: Finality, target: BlockId) -> None:
    """Whoever wants final blocks alone must not hold others: they could be undone."""
    if level is Finality.FINALIZED and view.block.number > target.number:
        raise Unavailable(
            Reason.NOT_YET,
            f"block `{view.block}` is not final, the finalized one is `{target}`",
            hint="wait until it is, or subscribe with the finality `latest`",
        )

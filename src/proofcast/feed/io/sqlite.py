"""The journal in SQLite: `Journal` to read it, `JournalWriter` to be the one who writes it."""

import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from proofcast.chain.segment import BlockId
from proofcast.chain.steps import ChainStep
from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedBlock
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.ethereum.block import RawBlock, encode_recorded, parse_recorded
from proofcast.event import Finality, Step
from proofcast.feed.io.database import Database
from proofcast.feed.journal import JournalEntry, JournalState, compute_state, verify_sequence

COMPRESSION = 1
"""zlib's fastest: a block is stored in a few milliseconds at a third of its size."""
READ_MAX = 1_024
"""Entries read at a time."""

COLUMNS = "step.sequence, step.step, step.number, step.hash, step.parent, step.trust, step.finality"


class Journal:
    """What was journalled in a folder; for any number of readers, in any process."""

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)

    def close(self) -> None:
        self._database.close()

    def get_chain_id(self) -> int:
        with self._database.snapshot() as connection:
            return self._get_chain(connection)[0]

    def read_state(self) -> JournalState:
        with self._database.snapshot() as connection:
            return read_state(connection, self._get_chain(connection)[1])

    def read(self, after_sequence: int, limit: int = READ_MAX) -> list[JournalEntry]:
        """The steps that follow `after_sequence`, oldest first; the same ones whenever they are asked for."""
        with self._database.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS}, raw FROM step LEFT JOIN block ON block.hash = step.hash AND step.step != 'final'"
                " WHERE step.sequence > ? ORDER BY step.sequence LIMIT ?",
                (after_sequence, limit),
            ).fetchall()
        return [JournalEntry(parse_step(row[:-1]), unpack_block(row[-1])) for row in rows]

    def read_steps(self, after_sequence: int, limit: int = READ_MAX) -> list[ChainStep]:
        """As `read`, for whoever needs no block."""
        with self._database.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM step WHERE sequence > ? ORDER BY sequence LIMIT ?", (after_sequence, limit)
            ).fetchall()
        return [parse_step(row) for row in rows]

    def list_undone(self, after_sequence: int) -> list[tuple[int, int]]:
        """Sequence and number of each block that was undone since, oldest first."""
        with self._database.snapshot() as connection:
            return connection.execute(
                "SELECT sequence, number FROM step WHERE sequence > ? AND step = 'undo' ORDER BY sequence",
                (after_sequence,),
            ).fetchall()

    def count_failures(self) -> dict[str, int]:
        """How many polls of the follower failed, ever, by reason; `disagrees` and `not-yet` are nodes that differ."""
        with self._database.snapshot() as connection:
            return dict(connection.execute("SELECT reason, count FROM failure").fetchall())

    def find_block(self, block_hash: bytes) -> RawBlock | None:
        """The block's bytes, verified when they were journalled; None where they were dropped or never here."""
        with self._database.snapshot() as connection:
            row = connection.execute("SELECT raw FROM block WHERE hash = ?", (block_hash,)).fetchone()
        return unpack_block(row[0]) if row else None

    def find_trust(self, block_hash: bytes) -> Trust | None:
        """Why the block is believed by now: the word of the last step that names it."""
        with self._database.snapshot() as connection:
            row = connection.execute(
                "SELECT step.trust FROM block JOIN step ON step.number = block.number AND step.hash = block.hash"
                " WHERE block.hash = ? ORDER BY step.sequence DESC LIMIT 1",
                (block_hash,),
            ).fetchone()
        return Trust(row[0]) if row else None

    def acknowledge(self, reader: str, sequence: int) -> None:
        """Remember that a reader needs nothing up to `sequence` any more; it never moves back."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO reader (name, sequence) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET sequence = max(sequence, excluded.sequence)",
                (reader, sequence),
            )

    def forget(self, reader: str) -> None:
        """Keep no more blocks for a reader that will not return."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM reader WHERE name = ?", (reader,))

    def open_writer(self, chain_id: int, checkpoint: BlockId) -> "JournalWriter":
        """Become the writer; whoever was it is fenced off. The checkpoint counts for a new journal only."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO chain VALUES (1, ?, ?, ?, 0)", (chain_id, checkpoint.number, checkpoint.hash)
            )
            connection.execute("UPDATE chain SET fence = fence + 1")
            (fence,) = connection.execute("SELECT fence FROM chain").fetchone()
            known, first = self._get_chain(connection)
            if known != chain_id:
                raise InvalidRequest(
                    Reason.WRONG_NETWORK,
                    f"the feed `{self._database.path}` is of chain `{known}`, not `{chain_id}`",
                    hint="name another folder, or a node of that chain",
                )
        return JournalWriter(self._database, fence, first)

    def _get_chain(self, connection: sqlite3.Connection) -> tuple[int, BlockId]:
        row = connection.execute("SELECT chain_id, checkpoint_number, checkpoint_hash FROM chain").fetchone()
        if row is None:
            raise Unavailable(
                Reason.NOT_YET,
                f"nothing is journalled in `{self._database.path}` yet",
                hint="start what follows the chain, then try again",
            )
        return row[0], BlockId(row[1], row[2])


class JournalWriter:
    """The one who writes, until the next one opens the journal."""

    def __init__(self, database: Database, fence: int, checkpoint: BlockId) -> None:
        self._database, self._fence, self._checkpoint = database, fence, checkpoint
        self._trimmed = 0
        """Up to this number there is nothing left to drop."""

    def read_state(self) -> JournalState:
        with self._database.snapshot() as connection:
            return read_state(connection, self._checkpoint)

    def append(self, steps: Sequence[ChainStep], blocks: Iterable[VerifiedBlock] = ()) -> None:
        """Write steps and the blocks that they apply, all or nothing; on disk when this returns."""
        if not steps:
            return
        sequences = {step.hash: step.sequence for step in steps if step.step is Step.APPLY}
        blocks = list(blocks)
        rows = [(block.hash, block.header.number, sequences[block.hash], pack_block(block.raw)) for block in blocks]
        with self._database.transaction() as connection:
            self._verify_fence(connection)
            (last,) = connection.execute("SELECT coalesce(max(sequence), 0) FROM step").fetchone()
            verify_sequence(last, steps)
            connection.executemany("INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?)", map(encode_step, steps))
            connection.executemany("INSERT OR REPLACE INTO block VALUES (?, ?, ?, ?)", rows)
            connection.executemany("INSERT OR IGNORE INTO header VALUES (?, ?, ?, ?, ?)", map(encode_header, blocks))
            undone = [(step.sequence, step.hash) for step in steps if step.step is Step.UNDO]
            connection.executemany("UPDATE block SET sequence = ? WHERE hash = ?", undone)

    def note_failure(self, reason: Reason) -> None:
        """A poll failed for this reason."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO failure VALUES (?, 1) ON CONFLICT (reason) DO UPDATE SET count = count + 1", (reason,)
            )

    def trim(self) -> int:
        """Drop the bytes of blocks at or below the finalized one that every reader has passed; says how many.

        A block with a log in the outbox stays: evidence for its events is made of it.
        """
        with self._database.transaction() as connection:
            self._verify_fence(connection)
            state = read_state(connection, self._checkpoint)
            (passed,) = connection.execute("SELECT min(sequence) FROM reader").fetchone()
            dropped = connection.execute(
                "DELETE FROM block WHERE number > ? AND number <= ? AND sequence <= ?"
                " AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.sequence = block.sequence)",
                (self._trimmed, state.finalized.number, state.sequence if passed is None else passed),
            ).rowcount
        if passed is None or passed >= state.sequence:
            self._trimmed = state.finalized.number
        return dropped

    def _verify_fence(self, connection: sqlite3.Connection) -> None:
        (fence,) = connection.execute("SELECT fence FROM chain").fetchone()
        if fence != self._fence:
            raise InvalidRequest(
                Reason.FENCED,
                f"writer `{self._fence}` of the feed `{self._database.path}` was replaced by writer `{fence}`",
                hint="another process follows the chain into this folder; stop one of them",
                have=self._fence,
                need=fence,
            )


def read_state(connection: sqlite3.Connection, checkpoint: BlockId) -> JournalState:
    """Folded from the steps above the last finalized block, so its cost does not grow with the journal."""
    found = connection.execute(
        "SELECT number, hash FROM step WHERE step = 'final' AND finality = 'finalized' ORDER BY sequence DESC LIMIT 1"
    ).fetchone()
    finalized = BlockId(*found) if found else checkpoint
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM step INDEXED BY step_number WHERE number > ? ORDER BY sequence", (finalized.number,)
    ).fetchall()
    state = compute_state(finalized, map(parse_step, rows))
    (last,) = connection.execute("SELECT coalesce(max(sequence), 0) FROM step").fetchone()
    return JournalState(last, finalized, state.safe, state.links)


def encode_step(step: ChainStep) -> tuple[int, str, int, bytes, bytes, str, str]:
    return (
        step.sequence,
        str(step.step),
        step.number,
        step.hash,
        step.parent_hash,
        str(step.trust),
        str(step.finality),
    )


def parse_step(row: tuple[int, str, int, bytes, bytes, str, str]) -> ChainStep:
    sequence, step, number, block_hash, parent, trust, finality = row
    return ChainStep(sequence, Step(step), number, block_hash, parent, Trust(trust), Finality(finality))


def encode_header(block: VerifiedBlock) -> tuple[bytes, int, bytes, int, bytes]:
    header = block.header
    return block.hash, header.number, header.parent_hash, header.timestamp, block.raw.header


def pack_block(block: RawBlock) -> bytes:
    return zlib.compress(encode_recorded(block), COMPRESSION)


def unpack_block(packed: bytes | None) -> RawBlock | None:
    return None if packed is None else parse_recorded(zlib.decompress(packed))

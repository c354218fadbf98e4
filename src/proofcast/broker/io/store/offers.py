"""Deliveries in the tables: offered, pending, acknowledged; and what may have to be undone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proofcast.broker.io.store.database import Row, Transaction
from proofcast.broker.io.store.subscriptions import Holding, get, verify_fence
from proofcast.broker.subscription import LogName, Pending
from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Finality, Step

PENDING = "ordinal, event_id, order_key, cursor_text, body, hash, log_index, step, attempts, due_at, is_repeated"


class Offered(NamedTuple):
    """A delivery about to become pending."""

    event_id: str
    order_key: str
    before: str
    cursor: str
    body: bytes
    log: LogName
    block_number: int
    step: Step
    is_repeated: bool
    is_final: bool = False
    """It will never be undone."""


@dataclass(frozen=True, slots=True)
class Given:
    """A delivery that may have to be undone."""

    log: LogName
    block_number: int
    body: bytes


# --- offering


def find_given(transaction: Transaction, name: str, logs: Sequence[LogName]) -> set[LogName]:
    """Which of the logs were offered and may be undone."""
    statement = "SELECT 1 FROM given WHERE subscription = ? AND hash = ? AND log_index = ?"
    return {log for log in logs if transaction.read(statement, (name, *log))}


def read_given(transaction: Transaction, name: str) -> list[Given]:
    """Everything that may have to be undone, newest first."""
    rows = transaction.read(
        "SELECT hash, log_index, number, body FROM given WHERE subscription = ? ORDER BY number DESC, log_index DESC",
        (name,),
    )
    return [Given((bytes(block_hash), index), number, bytes(body)) for block_hash, index, number, body in rows]


def offer(
    transaction: Transaction, holding: Holding, offered: Sequence[Offered], place: str, settled: int
) -> list[Pending]:
    """Write down what will be delivered next and how far it reaches, before any of it is sent.

    Up to the block number `settled` nothing that this subscriber was given can be undone any more.
    """
    verify_fence(transaction, holding, "place = ?, next_ordinal = next_ordinal + ?", place, len(offered))
    ((following,),) = transaction.read("SELECT next_ordinal FROM subscription WHERE name = ?", (holding.name,))
    first = following - len(offered)
    if holding.subscription.terms.finality is not Finality.FINALIZED:
        _write_given(transaction, holding.name, offered)
        transaction.change("DELETE FROM given WHERE subscription = ? AND number <= ?", (holding.name, settled))
    if offered:
        rows = [(holding.name, ordinal, *encode_offered(one)) for ordinal, one in enumerate(offered, first)]
        transaction.change_many("INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?)", rows)
    return [
        Pending(ordinal, one.event_id, one.order_key, one.cursor, one.body, one.log, one.step, 0, 0.0, one.is_repeated)
        for ordinal, one in enumerate(offered, first)
    ]


def _write_given(transaction: Transaction, name: str, offered: Sequence[Offered]) -> None:
    """In order, because one log may be applied, undone and applied again in one go."""
    undone = [one.log for one in offered if one.step is Step.UNDO]
    last = {one.log: one for one in offered}
    drop = [(name, *one.log) for one in last.values() if one.step is Step.UNDO]
    add = [
        (name, *one.log, one.block_number, one.body)
        for one in last.values()
        if one.step is Step.APPLY and not one.is_final
    ]
    if undone:
        transaction.change_many("DELETE FROM given WHERE subscription = ? AND hash = ? AND log_index = ?", drop)
        transaction.change_many(
            "UPDATE dead_letter SET is_undone = 1"
            " WHERE subscription = ? AND hash = ? AND log_index = ? AND step = 'apply'",
            [(name, *log) for log in undone],
        )
    if add:
        transaction.change_many("INSERT INTO given VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", add)


def read_pending(transaction: Transaction, name: str, after_ordinal: int, limit: int) -> list[Pending]:
    rows = transaction.read(
        f"SELECT {PENDING} FROM pending WHERE subscription = ? AND ordinal > ? ORDER BY ordinal LIMIT ?",
        (name, after_ordinal, limit),
    )
    return [parse_pending(row) for row in rows]


# --- acknowledging


def acknowledge(transaction: Transaction, holding: Holding, ordinals: Sequence[int]) -> None:
    """Forget deliveries that arrived; on disk when this is committed."""
    verify_fence(transaction, holding, "acknowledged = acknowledged + ?, failing_since = NULL", len(ordinals))
    rows = [(holding.name, ordinal) for ordinal in ordinals]
    transaction.change_many("DELETE FROM pending WHERE subscription = ? AND ordinal = ?", rows)


def acknowledge_up_to(transaction: Transaction, name: str, cursor: str) -> int:
    """The subscriber holds everything up to this cursor; how many deliveries that settles.

    A block undone and taken back is delivered twice with the same cursors: then the first is meant, to be safe.
    """
    found = transaction.read(
        "SELECT min(ordinal) FROM pending WHERE subscription = ? AND cursor_text = ?", (name, cursor)
    )
    if found[0][0] is None:
        subscription = get(transaction, name)
        ((last,),) = transaction.read("SELECT last_cursor FROM subscription WHERE name = ?", (name,))
        if cursor in (last, subscription.cursor):
            return 0
        raise InvalidRequest(
            Reason.NOT_PENDING,
            f"no unacknowledged delivery of `{name}` has the cursor `{ascii(cursor[:200])[1:-1]}`",
            hint=f"it stands at `{subscription.cursor}`; acknowledge a cursor as it was delivered, or rewind",
        )
    statement = "DELETE FROM pending WHERE subscription = ? AND ordinal <= ?"
    count = transaction.change(statement, (name, found[0][0]))
    transaction.change(
        "UPDATE subscription SET acknowledged = acknowledged + ?, last_cursor = ? WHERE name = ?", (count, cursor, name)
    )
    return count


# --- rows


def encode_offered(one: Offered) -> tuple[object, ...]:
    return one.event_id, one.order_key, one.before, one.cursor, one.body, *one.log, str(one.step), int(one.is_repeated)


def parse_pending(row: Row) -> Pending:
    ordinal, event_id, key, cursor, body, block_hash, log_index, step, attempts, due_at, is_repeated = row
    log = (bytes(block_hash), log_index)
    return Pending(ordinal, event_id, key, cursor, bytes(body), log, Step(step), attempts, due_at, bool(is_repeated))

"""Deliveries in the tables: offered, pending, tried, acknowledged, dead."""

from collections.abc import Sequence
from dataclasses import dataclass

from proofcast.broker.io.store.database import Row, Transaction
from proofcast.broker.io.store.subscriptions import Holding, get, verify_fence
from proofcast.broker.subscription import LogName, Pending
from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Finality, Step

ATTEMPTS_KEPT = 1_000
"""Of one subscription: what a person looks through."""
REDRIVE_MAX = 10_000
"""Dead letters made pending again by one request."""
PENDING = "ordinal, event_id, order_key, cursor_text, body, hash, log_index, step, attempts, due_at, is_repeated"
DEAD = "ordinal, event_id, order_key, cursor_text, body, hash, log_index, step, attempts, reason, died_at, is_undone"


@dataclass(frozen=True, slots=True)
class Offered:
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


@dataclass(frozen=True, slots=True)
class Attempt:
    ordinal: int
    number: int
    event_id: str
    outcome: str
    detail: str
    made_at: float


@dataclass(frozen=True, slots=True)
class DeadLetter:
    ordinal: int
    event_id: str
    order_key: str
    cursor: str
    body: bytes
    log: LogName
    step: Step
    attempts: int
    reason: str
    died_at: float
    is_undone: bool
    """The chain has taken the event back since: sending it again would deliver what is not."""


@dataclass(frozen=True, slots=True)
class Redriven:
    ordinals: tuple[int, ...]
    """Dead letters that are pending again."""
    undone: int
    """Dead letters dropped because the chain took their events back."""


# --- offering


def find_given(transaction: Transaction, name: str, logs: Sequence[LogName]) -> set[LogName]:
    """Which of the logs were offered and may be undone."""
    statement = "SELECT 1 FROM given WHERE subscription = ? AND hash = ? AND log_index = ?"
    return {log for log in logs if transaction.read(statement, (name, *log))}


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
    add = [(name, *one.log, one.block_number) for one in last.values() if one.step is Step.APPLY]
    if undone:
        transaction.change_many("DELETE FROM given WHERE subscription = ? AND hash = ? AND log_index = ?", drop)
        transaction.change_many(
            "UPDATE dead_letter SET is_undone = 1"
            " WHERE subscription = ? AND hash = ? AND log_index = ? AND step = 'apply'",
            [(name, *log) for log in undone],
        )
    if add:
        transaction.change_many("INSERT INTO given VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", add)


def read_pending(transaction: Transaction, name: str, after_ordinal: int, limit: int) -> list[Pending]:
    rows = transaction.read(
        f"SELECT {PENDING} FROM pending WHERE subscription = ? AND ordinal > ? ORDER BY ordinal LIMIT ?",
        (name, after_ordinal, limit),
    )
    return [parse_pending(row) for row in rows]


# --- outcomes


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


def postpone(transaction: Transaction, holding: Holding, ordinal: int, attempts: int, due_at: float) -> None:
    now = transaction.get_time()
    verify_fence(transaction, holding, "failing_since = coalesce(failing_since, ?)", now)
    transaction.change(
        "UPDATE pending SET attempts = ?, due_at = ?, is_repeated = 1 WHERE subscription = ? AND ordinal = ?",
        (attempts, due_at, holding.name, ordinal),
    )


def bury(transaction: Transaction, holding: Holding, ordinal: int, reason: str) -> None:
    """Give a delivery up; what it held back may go on. Its undo may be among that: then it is dead for good."""
    verify_fence(transaction, holding)
    transaction.change(
        "INSERT INTO dead_letter SELECT subscription, ordinal, event_id, order_key, cursor_text, body, hash, log_index,"
        " step, attempts + 1, ?, ?, (SELECT count(*) FROM pending undo WHERE undo.subscription = pending.subscription"
        " AND undo.hash = pending.hash AND undo.log_index = pending.log_index AND undo.step = 'undo'"
        " AND undo.ordinal > pending.ordinal) FROM pending WHERE subscription = ? AND ordinal = ?",
        (reason, transaction.get_time(), holding.name, ordinal),
    )
    transaction.change("DELETE FROM pending WHERE subscription = ? AND ordinal = ?", (holding.name, ordinal))


def record(transaction: Transaction, name: str, attempts: Sequence[Attempt]) -> None:
    """For people to look at; the newest are kept."""
    rows = [(name, one.ordinal, one.number, one.event_id, one.outcome, one.detail, one.made_at) for one in attempts]
    transaction.change_many("INSERT INTO attempt VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)
    newest = max(one.ordinal for one in attempts)
    transaction.change("DELETE FROM attempt WHERE subscription = ? AND ordinal < ?", (name, newest - ATTEMPTS_KEPT))


def read_attempts(transaction: Transaction, name: str, before: int, limit: int) -> list[Attempt]:
    """Newest first, of deliveries before an ordinal."""
    get(transaction, name)
    rows = transaction.read(
        "SELECT ordinal, number, event_id, outcome, detail, made_at FROM attempt"
        " WHERE subscription = ? AND ordinal < ? ORDER BY ordinal DESC, number DESC LIMIT ?",
        (name, before, limit),
    )
    return [Attempt(*row) for row in rows]


# --- dead letters


def read_dead(transaction: Transaction, name: str, after: int, limit: int) -> list[DeadLetter]:
    get(transaction, name)
    rows = transaction.read(
        f"SELECT {DEAD} FROM dead_letter WHERE subscription = ? AND ordinal > ? ORDER BY ordinal LIMIT ?",
        (name, after, limit),
    )
    return [parse_dead(row) for row in rows]


def redrive(transaction: Transaction, name: str, ordinals: Sequence[int] | None) -> Redriven:
    """Make dead letters pending again, all or those named; what the chain took back is dropped instead."""
    subscription = get(transaction, name)
    letters = [
        one for one in read_dead(transaction, name, -1, REDRIVE_MAX) if ordinals is None or one.ordinal in ordinals
    ]
    ((first,),) = transaction.read("SELECT next_ordinal FROM subscription WHERE name = ?", (name,))
    alive = [one for one in letters if not one.is_undone]
    rows = [
        (
            name,
            ordinal,
            one.event_id,
            one.order_key,
            subscription.place,
            subscription.place,
            one.body,
            *one.log,
            one.step,
        )
        for ordinal, one in enumerate(alive, first)
    ]
    transaction.change_many("INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 1)", rows)
    gone = [(name, one.ordinal) for one in letters]
    transaction.change_many("DELETE FROM dead_letter WHERE subscription = ? AND ordinal = ?", gone)
    transaction.change(
        "UPDATE subscription SET next_ordinal = next_ordinal + ?, generation = generation + 1 WHERE name = ?",
        (len(alive), name),
    )
    return Redriven(tuple(range(first, first + len(alive))), len(letters) - len(alive))


# --- rows


def encode_offered(one: Offered) -> tuple[object, ...]:
    return one.event_id, one.order_key, one.before, one.cursor, one.body, *one.log, str(one.step), int(one.is_repeated)


def parse_pending(row: Row) -> Pending:
    ordinal, event_id, key, cursor, body, block_hash, log_index, step, attempts, due_at, is_repeated = row
    log = (bytes(block_hash), log_index)
    return Pending(ordinal, event_id, key, cursor, bytes(body), log, Step(step), attempts, due_at, bool(is_repeated))


def parse_dead(row: Row) -> DeadLetter:
    ordinal, event_id, key, cursor, body, block_hash, log_index, step, attempts, reason, died_at, is_undone = row
    log = (bytes(block_hash), log_index)
    return DeadLetter(
        ordinal, event_id, key, cursor, bytes(body), log, Step(step), attempts, reason, died_at, bool(is_undone)
    )

"""Attempts and dead letters in the tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proofcast.broker.io.store.database import Row, Transaction
from proofcast.broker.io.store.subscriptions import Holding, get, verify_fence
from proofcast.broker.subscription import LogName
from proofcast.event import Step

ATTEMPTS_KEPT = 1_000
"""Of one subscription: what a person looks through."""
REDRIVE_MAX = 10_000
"""Dead letters made pending again by one request."""
DEAD = "ordinal, event_id, order_key, cursor_text, body, hash, log_index, step, attempts, reason, died_at, is_undone"


class Attempt(NamedTuple):
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


# --- attempts


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


def parse_dead(row: Row) -> DeadLetter:
    ordinal, event_id, key, cursor, body, block_hash, log_index, step, attempts, reason, died_at, is_undone = row
    log = (bytes(block_hash), log_index)
    return DeadLetter(
        ordinal, event_id, key, cursor, bytes(body), log, Step(step), attempts, reason, died_at, bool(is_undone)
    )

"""Subscriptions in the tables: made, changed, held by one broker at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from proofcast.broker.io.store.database import Row, Transaction
from proofcast.broker.subscription import Status, Subscription, Terms, Transport
from proofcast.broker.terms import format_terms, parse_terms
from proofcast.errors import InvalidRequest, Reason, Unavailable

LEASE_S = 15.0
"""How long a broker that died keeps what it held; a living one renews every third of it."""
REMEMBERED_S = 86_400.0
"""For how long an idempotency key makes a request count once."""
NO_PLACE = (-1, -1)
COLUMNS = (
    "name, terms, secrets, status, reason, generation, place,"
    " coalesce((SELECT before FROM pending WHERE subscription = name ORDER BY ordinal LIMIT 1), place),"
    " repeats_number, repeats_index,"
    " (SELECT count(*) FROM pending WHERE subscription = name),"
    " (SELECT count(*) FROM dead_letter WHERE subscription = name),"
    " acknowledged, failing_since, created_at"
)


@dataclass(frozen=True, slots=True)
class Holding:
    """The right to deliver for a subscription, until somebody else gets a higher fence."""

    subscription: Subscription
    fence: int

    @property
    def name(self) -> str:
        return self.subscription.name


def create(transaction: Transaction, name: str, terms: Terms, place: str) -> Subscription:
    added = transaction.change(
        "INSERT INTO subscription VALUES (?, ?, ?, ?, ?, '', 1, ?, '', ?, ?, 1, 0, NULL, ?, '', 0, 0)"
        " ON CONFLICT (name) DO NOTHING",
        (name, *encode_terms(terms), Status.ACTIVE.value, place, *NO_PLACE, transaction.get_time()),
    )
    if not added:
        raise InvalidRequest(
            Reason.ALREADY_EXISTS,
            f"a subscription `{name}` exists already",
            hint="choose another name, or change that one with PATCH; a change keeps its cursor",
        )
    return get(transaction, name)


def create_once(
    transaction: Transaction, name: str, terms: Terms, place: str, key: str, digest: bytes
) -> tuple[Subscription, bool]:
    """Create unless the same request did it before; says whether it is new."""
    found = transaction.read("SELECT digest, name FROM request WHERE idempotency_key = ?", (key,)) if key else []
    if found:
        if bytes(found[0][0]) != digest:
            raise InvalidRequest(
                Reason.ALREADY_EXISTS,
                f"the idempotency key `{key}` was used for another request",
                hint="use a new key for a new request",
            )
        return get(transaction, found[0][1]), False
    if key:
        now = transaction.get_time()
        transaction.change("DELETE FROM request WHERE made_at < ?", (now - REMEMBERED_S,))
        transaction.change("INSERT INTO request VALUES (?, ?, ?, ?)", (key, digest, name, now))
    return create(transaction, name, terms, place), True


def get(transaction: Transaction, name: str) -> Subscription:
    rows = transaction.read(f"SELECT {COLUMNS} FROM subscription WHERE name = ?", (name,))
    if not rows:
        raise refuse_unknown(name)
    return parse_subscription(rows[0])


def find_all(transaction: Transaction, after: str, limit: int, transport: str, status: str) -> list[Subscription]:
    rows = transaction.read(
        f"SELECT {COLUMNS} FROM subscription WHERE name > ? AND (? = '' OR transport = ?) AND (? = '' OR status = ?)"
        " ORDER BY name LIMIT ?",
        (after, transport, transport, status, status, limit),
    )
    return [parse_subscription(row) for row in rows]


def change_terms(transaction: Transaction, name: str, terms: Terms) -> Subscription:
    return change(transaction, name, "terms = ?, secrets = ?, transport = ?", encode_terms(terms))


def set_status(transaction: Transaction, name: str, status: Status, reason: str = "") -> Subscription:
    found = get(transaction, name)
    if found.status is status:
        return found
    return change(transaction, name, "status = ?, reason = ?, failing_since = NULL", (status.value, reason))


def change(transaction: Transaction, name: str, what: str, values: Sequence[object]) -> Subscription:
    """Whoever holds it notices by the generation, and takes it up again as it is now."""
    statement = f"UPDATE subscription SET {what}, generation = generation + 1 WHERE name = ?"
    if not transaction.change(statement, (*values, name)):
        raise refuse_unknown(name)
    return get(transaction, name)


def rewind(
    transaction: Transaction, name: str, place: str, number: int, log_index: int, former: tuple[int, int]
) -> Subscription:
    """Go on from a place; what was given above it counts as dropped by the subscriber, and comes again, marked."""
    transaction.change("DELETE FROM pending WHERE subscription = ?", (name,))
    transaction.change(
        "DELETE FROM given WHERE subscription = ? AND (number > ? OR (number = ? AND log_index > ?))",
        (name, number, number, log_index),
    )
    until = max(former, get(transaction, name).repeats_until)
    what = "place = ?, repeats_number = ?, repeats_index = ?, fence = fence + 1, held_until = 0"
    return change(transaction, name, what, (place, *until))


def delete(transaction: Transaction, name: str) -> None:
    if not transaction.change("DELETE FROM subscription WHERE name = ?", (name,)):
        raise refuse_unknown(name)


# --- who delivers


def hold(transaction: Transaction, name: str, owner: str, lease_s: float) -> Holding:
    """Get the right to deliver, with a higher fence than anybody had; refused while another broker has it."""
    now = transaction.get_time()
    rows = transaction.read(
        "UPDATE subscription SET owner = ?, fence = fence + 1, held_until = ?"
        " WHERE name = ? AND (owner = ? OR held_until < ?) RETURNING fence",
        (owner, now + lease_s, name, owner, now),
    )
    found = get(transaction, name)
    if not rows:
        raise Unavailable(
            Reason.HELD_ELSEWHERE,
            f"another broker delivers for `{name}`",
            hint=f"ask that one; this one takes over within {lease_s:.0f} s of its end",
        )
    transaction.change("UPDATE pending SET is_repeated = 1 WHERE subscription = ?", (name,))
    return Holding(found, int(rows[0][0]))


def renew(transaction: Transaction, owner: str, lease_s: float, holdings: Sequence[Holding]) -> dict[str, int]:
    """Keep what is held for another while; the generation of each that still is ours."""
    until = transaction.get_time() + lease_s
    kept: dict[str, int] = {}
    for holding in holdings:
        rows = transaction.read(
            "UPDATE subscription SET held_until = ? WHERE name = ? AND fence = ? AND owner = ? RETURNING generation",
            (until, holding.name, holding.fence, owner),
        )
        if rows:
            kept[holding.name] = int(rows[0][0])
    return kept


def release(transaction: Transaction, holding: Holding) -> None:
    statement = "UPDATE subscription SET held_until = 0 WHERE name = ? AND fence = ?"
    transaction.change(statement, (holding.name, holding.fence))


def find_free(transaction: Transaction, transports: Sequence[Transport]) -> list[str]:
    """Active subscriptions that somebody must deliver for and nobody does."""
    marks = ", ".join("?" for _ in transports)
    rows = transaction.read(
        f"SELECT name FROM subscription WHERE status = 'active' AND transport IN ({marks})"
        " AND held_until < ? ORDER BY name",
        (*transports, transaction.get_time()),
    )
    return [name for (name,) in rows]


def verify_fence(transaction: Transaction, holding: Holding, what: str = "fence = fence", *values: object) -> None:
    """Raise unless the holding is still the one; changes the row, so that a take-over waits for our commit."""
    statement = f"UPDATE subscription SET {what} WHERE name = ? AND fence = ?"
    if not transaction.change(statement, (*values, holding.name, holding.fence)):
        raise refuse_fenced(holding)


# --- rows


def encode_terms(terms: Terms) -> tuple[str, str, str]:
    secrets = orjson.dumps(list(terms.secrets)).decode()
    return orjson.dumps(format_terms(terms)).decode(), secrets, terms.transport.value


def parse_subscription(row: Row) -> Subscription:
    name, terms, secrets, status, reason, generation, place, cursor, number, index, *rest = row
    found = parse_terms(orjson.loads(terms) | {"secrets": orjson.loads(secrets)})
    return Subscription(name, found, Status(status), reason, generation, place, cursor, (number, index), *rest)


def refuse_unknown(name: str) -> InvalidRequest:
    return InvalidRequest(
        Reason.UNKNOWN_SUBSCRIPTION,
        f"there is no subscription `{ascii(name[:80])[1:-1]}`",
        hint="`proofcast subscription list` names those there are",
    )


def refuse_fenced(holding: Holding) -> InvalidRequest:
    return InvalidRequest(
        Reason.FENCED,
        f"`{holding.name}` is delivered by somebody else: fence `{holding.fence}` is old",
        hint="reconnect; what was not acknowledged comes again, marked",
    )

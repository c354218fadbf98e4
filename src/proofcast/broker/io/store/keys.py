"""API keys in the tables: their digests only."""

from dataclasses import dataclass

from proofcast.broker.io.store.database import Transaction
from proofcast.broker.scope import Scope
from proofcast.errors import InvalidRequest, Reason


@dataclass(frozen=True, slots=True)
class ApiKey:
    id: str
    digest: bytes
    """SHA-256 of the secret, which is random and long: nothing slower is needed."""
    label: str
    scope: Scope
    rate_per_s: int
    """Requests; 0 for as many as it likes."""
    created_at: float


def add(transaction: Transaction, key_id: str, digest: bytes, label: str, scope: Scope, rate_per_s: int) -> ApiKey:
    now = transaction.get_time()
    values = (key_id, digest, label, str(scope), rate_per_s, now)
    transaction.change("INSERT INTO api_key VALUES (?, ?, ?, ?, ?, ?)", values)
    return ApiKey(key_id, digest, label, scope, rate_per_s, now)


def find_all(transaction: Transaction) -> list[ApiKey]:
    rows = transaction.read(
        "SELECT id, digest, label, scope, rate_per_s, created_at FROM api_key ORDER BY created_at, id"
    )
    return [ApiKey(key_id, bytes(digest), label, Scope(scope), *rest) for key_id, digest, label, scope, *rest in rows]


def revoke(transaction: Transaction, key_id: str) -> None:
    if not transaction.change("DELETE FROM api_key WHERE id = ?", (key_id,)):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"there is no key `{ascii(key_id[:80])[1:-1]}`",
            hint="`proofcast key list` names those there are",
        )

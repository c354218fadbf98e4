"""Who may do what: API keys, their scopes and rates. Without any key only this machine is served.

A key reads `pck_<id>_<secret>` and travels as `Authorization: Bearer`. The store has its digest; a broker reads the
digests every few seconds, so that a revoked key ends soon, and never asks the database while it answers.
"""

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import re
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Middleware

from proofcast.broker.io.problems import Handler
from proofcast.broker.io.store.durable import Store
from proofcast.broker.io.store.keys import ApiKey
from proofcast.broker.scope import Scope
from proofcast.errors import InvalidRequest, ProofcastError, Reason, Unavailable

REFRESH_S = 2.0
"""After which a revoked key is refused by every broker."""
BURST_S = 2.0
"""A key may use so many seconds' worth of its rate at once."""
GUARDED = ("/api/", "/metrics")
"""Pages and health need no key; figures name subscriptions, so they do."""
CARRIED = frozenset({"forwarded", "x-forwarded-for"})
"""Headers by which a reverse proxy on this machine says that somebody else asks."""
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
KEY = re.compile(r"pck_([a-z2-7]{10})_([A-Za-z0-9_-]{43})")
READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
ACKNOWLEDGEMENT = re.compile(r"/api/v1/subscriptions/[^/]+/ack")


@dataclass(frozen=True, slots=True)
class NewKey:
    text: str = field(repr=False)
    """Shown once, to whoever made it."""
    id: str
    digest: bytes


def make_key() -> NewKey:
    key_id = base64.b32encode(secrets.token_bytes(7)).decode().lower()[:10]
    secret = secrets.token_urlsafe(32)
    return NewKey(f"pck_{key_id}_{secret}", key_id, compute_digest(secret))


def compute_digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


@dataclass(slots=True)
class Allowance:
    """A bucket of requests that fills at a key's rate."""

    left: float
    at: float

    def take(self, rate_per_s: int, now: float) -> bool:
        self.left = min(rate_per_s * BURST_S, self.left + (now - self.at) * rate_per_s)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Access:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: dict[str, ApiKey] = {}
        self._allowances: dict[str, Allowance] = {}

    async def refresh(self) -> None:
        self._keys = {key.id: key for key in await self._store.find_keys()}
        self._allowances = {key_id: one for key_id, one in self._allowances.items() if key_id in self._keys}

    async def run(self, _: web.Application) -> AsyncIterator[None]:
        """Keep the keys fresh while the door is open; without the database those known stay."""
        await self.refresh()
        running = asyncio.create_task(self._refresh_always())
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def _refresh_always(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            try:
                await self.refresh()
            except ProofcastError:
                continue

    def verify(self, request: web.Request) -> None:
        """Raise unless whoever asks may do this."""
        if not request.path.startswith(GUARDED):
            return
        if not self._keys:
            verify_local(request)
            return
        key = self._find_key(request)
        if key is None:
            raise InvalidRequest(
                Reason.NO_ACCESS, "no key that this broker knows was given", hint="send `Authorization: Bearer pck_...`"
            )
        needed = get_needed_scope(request)
        if needed is Scope.MANAGE and key.scope is not Scope.MANAGE:
            raise InvalidRequest(
                Reason.NOT_ALLOWED,
                f"this needs scope `{needed}`, the key has `{key.scope}`",
                hint="use another key",
            )
        self._take(key)

    def _find_key(self, request: web.Request) -> ApiKey | None:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        parts = KEY.fullmatch(text.strip()) if scheme.lower() == "bearer" else None
        found = self._keys.get(parts[1]) if parts else None
        if parts and found and hmac.compare_digest(found.digest, compute_digest(parts[2])):
            return found
        return None

    def _take(self, key: ApiKey) -> None:
        now = time.monotonic()
        allowance = self._allowances.setdefault(key.id, Allowance(key.rate_per_s * BURST_S, now))
        if key.rate_per_s and not allowance.take(key.rate_per_s, now):
            raise Unavailable(
                Reason.TOO_MANY, f"the key may ask `{key.rate_per_s}` times a second", hint="ask less often"
            )


def get_needed_scope(request: web.Request) -> Scope:
    if request.method in READ_METHODS or ACKNOWLEDGEMENT.fullmatch(request.path):
        return Scope.READ
    return Scope.MANAGE


def verify_local(request: web.Request) -> None:
    """Both ends are this machine; by name too, so that a page of another origin cannot ask through a browser."""
    peer = request.transport.get_extra_info("peername") if request.transport else None
    host = request.url.host or ""
    is_carried = not CARRIED.isdisjoint(name.lower() for name in request.headers)
    is_near = peer and ipaddress.ip_address(peer[0].partition("%")[0]).is_loopback
    if is_near and host in LOOPBACK_NAMES and not is_carried:
        return
    raise InvalidRequest(
        Reason.NO_ACCESS,
        f"without keys only this machine is served, not `{ascii(host[:80])[1:-1]}`",
        hint="make a key with `proofcast key create`",
    )


def build_middleware(access: Access) -> Middleware:
    @web.middleware
    async def check_access(request: web.Request, handler: Handler) -> web.StreamResponse:
        access.verify(request)
        return await handler(request)

    return check_access

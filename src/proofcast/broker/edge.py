"""What a request says of where it comes from, and how much of that is believed.

- `X-Forwarded-For`, `-Proto` and `-Host` are believed of configured proxies alone, and read from the right: the last
  address that is no proxy of ours is the client. Anybody can write the ones before it.
- A page of another origin may read answers only where its origin is allowed. Nor may it change anything or open a
  WebSocket then: a browser would let it try.
- `traceparent` is given back as it came where it is well-formed. A delivery's trace is computed from the event's id, so
  that all deliveries of an event, by any broker and any door, are one trace.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from proofcast.errors import InvalidRequest, Reason

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
ANY_ORIGIN = "*"
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:.]+\](:\d{1,5})?")
TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
HOPS_MAX = 16
"""Proxies between a client and us."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What the operator allows."""

    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    origins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Client:
    """Where a request comes from, as far as it is believed; empty where nothing better is known."""

    address: str
    scheme: str = ""
    host: str = ""


def parse_origin(text: str) -> str:
    if text != ANY_ORIGIN and not ORIGIN.fullmatch(text):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`{ascii(text[:80])[1:-1]}` is no origin",
            hint="write `https://app.example`, without a path, or `*`",
        )
    return text


def find_client(edge: Edge, peer: str, headers: Mapping[str, str]) -> Client:
    """Who asks, behind however many proxies of ours."""
    if not is_proxy(edge, peer):
        return Client(peer)
    address = peer
    for hop in reversed(headers.get("X-Forwarded-For", "").split(",")[-HOPS_MAX:]):
        found = find_address(hop.strip())
        if found is None:
            break
        address = str(found)
        if not is_proxy(edge, address):
            break
    scheme = headers.get("X-Forwarded-Proto", "").rpartition(",")[2].strip()
    host = headers.get("X-Forwarded-Host", "").rpartition(",")[2].strip()
    return Client(address, scheme if scheme in ("http", "https") else "", host)


def is_proxy(edge: Edge, address: str) -> bool:
    found = find_address(address)
    return found is not None and any(found in network for network in edge.proxies)


def find_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def is_allowed(edge: Edge, origin: str, own: str) -> bool:
    """May a page of this origin read our answers?"""
    return origin in (own, *edge.origins) or ANY_ORIGIN in edge.origins


def verify_origin(edge: Edge, origin: str, own: str, method: str, is_upgrade: bool) -> None:
    """Raise where a page of another origin wants more than to look; `origin` is empty where no browser asks."""
    if origin and not is_allowed(edge, origin, own) and (is_upgrade or method not in SAFE_METHODS):
        raise InvalidRequest(
            Reason.NOT_ALLOWED,
            f"pages of `{ascii(origin[:80])[1:-1]}` may not do this here",
            hint="name the origin with `--allow-origin`",
        )


def find_traceparent(text: str) -> str | None:
    """The header as it came, where W3C Trace Context would take it."""
    return text if TRACEPARENT.fullmatch(text) else None


def compute_traceparent(event_id: str, attempt: int = 1) -> str:
    """Of a delivery: one trace per event, one span per attempt."""
    digits = hashlib.sha256(event_id.encode()).hexdigest()
    span = (int(digits[32:48], 16) + attempt) % 2**64
    return f"00-{digits[:32]}-{span:016x}-01"

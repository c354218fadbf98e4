"""Where webhooks may go: public addresses, and those the operator named.

A name is resolved once and the connection is made to the very addresses that were looked at, so a name that answers
differently a moment later gains nothing. Redirects are not followed.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import urlsplit

from proofcast.errors import InvalidRequest, Reason

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
URL = re.compile(r"[!-~]{1,2048}")
"""Printable ASCII: nothing that could end a line of a request."""
ADDRESSES_MAX = 4
"""Of one host, tried in turn."""
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv6 addresses that end in an IPv4 one."""


Resolve = Callable[[str, int], Awaitable[list[str]]]
"""A host's addresses, for a port."""


async def resolve_by_system(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Guard:
    def __init__(self, allowed: Iterable[Network] = (), resolve: Resolve = resolve_by_system) -> None:
        self._allowed = tuple(allowed)
        self._resolve = resolve

    def verify_url(self, url: str) -> None:
        """Raise unless it is an address that something may be sent to; names are looked at when they are resolved."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise refuse(f"`{ascii(url[:200])[1:-1]}` is no address (`{error}`)") from error
        if parts.scheme not in ("http", "https") or not host or port == 0 or not URL.fullmatch(url):
            raise refuse(f"`{ascii(url[:200])[1:-1]}` is no address of a receiver")
        if parts.username is not None or parts.password is not None:
            raise refuse("the address of the receiver holds a user or password")
        literal = find_address(host)
        if literal is not None:
            self.verify_address(literal)
        elif parts.scheme == "http" and not self._allowed:
            raise refuse(
                f"`{parts.scheme}://{host}` is not encrypted", "use https; http is for addresses named to the broker"
            )

    def verify_address(self, address: Address) -> None:
        if any(address.version == one.version and address in one for one in self._allowed):
            return
        if any(not is_public(one) for one in (address, *find_embedded(address))):
            raise refuse(
                f"`{address}` is a private address", "name it to the broker with `--allow-receiver` if it is meant"
            )

    async def find_addresses(self, host: str, port: int) -> list[str]:
        """To connect to, and to nothing else: where one of a host's addresses is refused, all are."""
        literal = find_address(host)
        found = [str(literal)] if literal else await self._resolve(host, port)
        for text in found:
            address = find_address(text)
            if address is None:
                raise refuse(f"`{host}` resolves to `{text}`, which is no address")
            self.verify_address(address)
        return found[:ADDRESSES_MAX]


def is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast


def find_embedded(address: Address) -> list[Address]:
    """IPv4 addresses that an IPv6 one may lead to."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [one for one in found if one is not None]


def find_address(host: str) -> Address | None:
    """The address that a host is written as, also `127.1` or `0x7f000001` as systems read them; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def refuse(message: str, hint: str = "write https:// and the name of a public host") -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)

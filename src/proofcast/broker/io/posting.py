"""POST over kept connections, to addresses that the guard has looked at.

A client library spends longer on a request than everything else that a webhook costs, and connects to what it resolves
itself. A request here is one write, an answer its status and one header; redirects are answers like any other.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httptools

from proofcast.broker.io.guard import Guard

ANSWER_BYTES_MAX = 64 * 1024
"""Of an answer, which nobody reads; a longer one costs its sender the connection."""
IDLE_MAX = 64
"""Connections kept to one receiver."""
LENGTHS = (b"content-length", b"transfer-encoding")
"""Headers by one of which an answer says where it ends."""
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A receiver, taken apart once."""

    scheme: str
    host: str
    port: int
    head: bytes
    """First lines of every request."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    retry_after: str


def parse_address(url: str) -> Address:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    head = f"POST {path} HTTP/1.1\r\nhost: {parts.netloc}\r\nuser-agent: proofcast\r\naccept: */*\r\n".encode()
    return Address(parts.scheme, host, port, head)


class Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self.is_usable = True
        self.has_answered = False
        """Did anything of the answer to the current request come?"""
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._is_open_ended = False
        """Does the answer end when the receiver hangs up?"""

    async def post(self, request: bytes, timeout_s: float) -> Answer:
        assert self._transport is not None, "used before it was made"
        self._parser = httptools.HttpResponseParser(self)
        self._received, self._retry_after, self.has_answered = 0, "", False
        self._has_length = self._is_open_ended = False
        loop = asyncio.get_running_loop()
        self._answer = loop.create_future()
        patience = loop.call_later(timeout_s, self._fail, TimeoutError())  # `asyncio.timeout` costs as much as the post
        self._transport.write(request)
        try:
            return await self._answer
        finally:
            patience.cancel()
            self._answer = None

    def close(self) -> None:
        self.is_usable = False
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            self.close()  # it speaks without being asked
            return
        self.has_answered = True
        self._received += len(data)
        if self._received > ANSWER_BYTES_MAX:
            self._fail(ConnectionError(f"the answer has more than {ANSWER_BYTES_MAX} bytes"))
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"the answer is no HTTP ({error})"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_open_ended:
            self.on_message_complete()
        self._fail(ConnectionError("the receiver closed the connection before it answered"))

    def _fail(self, error: OSError) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # --- httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")
        self._has_length = self._has_length or name.lower() in LENGTHS

    def on_headers_complete(self) -> None:
        self._is_open_ended = not self._has_length and self._parser.get_status_code() >= 200

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._answer is None or self._answer.done() or status < 200:
            return
        self.is_usable = self._parser.should_keep_alive()
        self._answer.set_result(Answer(status, self._retry_after))


class Poster:
    """Connections to every receiver."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._tls = ssl.create_default_context()
        self._idle: dict[tuple[str, str, int], list[Connection]] = defaultdict(list)

    async def post(self, to: Address, headers: Mapping[str, str], body: bytes, timeout_s: float) -> Answer:
        """OSError, TimeoutError or InvalidRequest where nobody answers, or nobody may be asked."""
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        request = b"%s%scontent-length: %d\r\n\r\n%s" % (to.head, lines.encode(), len(body), body)
        kept = self._take(to)
        if kept is not None:
            try:
                return await self._exchange(to, kept, request, timeout_s)
            except ConnectionError:
                if kept.has_answered:
                    raise
        async with asyncio.timeout(timeout_s):
            made = await self._connect(to)  # the first one, or another because the kept one was closed meanwhile
        return await self._exchange(to, made, request, timeout_s)

    def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    async def _exchange(self, to: Address, connection: Connection, request: bytes, timeout_s: float) -> Answer:
        is_kept = False
        try:
            answer = await connection.post(request, timeout_s)
            idle = self._idle[to.scheme, to.host, to.port]
            is_kept = connection.is_usable and len(idle) < IDLE_MAX
            if is_kept:
                idle.append(connection)
            return answer
        finally:
            if not is_kept:
                connection.close()

    def _take(self, to: Address) -> Connection | None:
        idle = self._idle[to.scheme, to.host, to.port]
        while idle:
            connection = idle.pop()
            if connection.is_usable:
                return connection
        return None

    async def _connect(self, to: Address) -> Connection:
        loop, tls = asyncio.get_running_loop(), self._tls if to.scheme == "https" else None
        failure = OSError(f"`{to.host}` has no address")
        for address in await self._guard.find_addresses(to.host, to.port):
            try:
                _, connection = await loop.create_connection(
                    Connection, address, to.port, ssl=tls, server_hostname=to.host if tls else None
                )
            except OSError as error:
                failure = error
            else:
                return connection
        raise failure

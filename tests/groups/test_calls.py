"""Calls over HTTP: what is refused, what comes in pieces or at once, and who gets streams."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

import pytest

from proofcast.errors import InvalidRequest
from proofcast.groups.io.calls import (
    BODY_BYTES_MAX,
    HEAD_BYTES_MAX,
    WAITING_MAX,
    Answer,
    AnswerCall,
    Call,
    CallProtocol,
)
from proofcast.groups.io.doors import Callers
from proofcast.groups.login import TOKEN_S_MAX, compute_token

ASK = b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Stream(asyncio.Protocol):
    """Says what it was given."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"stream:" + data)


async def echo(call: Call) -> Answer:
    """Later for what asks to be answered late, so that a wrong order would show."""
    for _ in range(int(dict(parse_qsl(call.target.decode().partition("?")[2])).get("turns", 0))):
        await asyncio.sleep(0)
    return Answer(call.method.encode() + b" " + call.body)


def talk(work: Talk, answer: AnswerCall = echo) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: CallProtocol(answer, Stream), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            await work(reader, writer)
        finally:
            writer.close()
            server.close()

    asyncio.run(run())


async def read_answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Status line and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
    return head.split(b"\r\n")[0], await reader.readexactly(length)


# --- refusals


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x16\x03\x01 nonsense of TLS \r\n\r\n", b"400"),
        (b"GET /v1/server HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * HEAD_BYTES_MAX + b"\r\n", b"413"),
        (ASK % (BODY_BYTES_MAX + 1, b"a" * (BODY_BYTES_MAX + 1)), b"413"),
    ],
    ids=["nonsense", "upgrade", "head", "body"],
)
def test_what_is_no_call_ends_its_connection(request_bytes: bytes, status: bytes) -> None:
    async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request_bytes)
        line, _ = await read_answer(reader)
        assert line.split()[1] == status
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)

    talk(work)


def test_token_is_known_until_it_expires() -> None:
    secret, device, now = b"s" * 32, b"d" * 32, 1_000_000.0
    token = b"Bearer " + base64.urlsafe_b64encode(compute_token(secret, device, now))
    callers = Callers(secret)
    for later in (0.0, 1.0, TOKEN_S_MAX - 1.0):
        assert callers.verify(token.decode(), now + later) == device
    with pytest.raises(InvalidRequest, match="expired"):
        callers.verify(token.decode(), now + TOKEN_S_MAX + 1)
    with pytest.raises(InvalidRequest, match="credentials"):
        callers.verify(token.decode().lower(), now)


def test_caller_that_does_not_read_is_not_served_on() -> None:
    """It asks for many large answers at once; they are made when it takes them."""
    count, large, made = 40, b"a" * (4 << 20), 0

    async def answer(call: Call) -> Answer:
        nonlocal made
        made += 1
        return Answer(large)

    async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(ASK % (0, b"") * count)
        while not made:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert made < count / 2, made
        assert [(await read_answer(reader))[1] == large for _ in range(count)] == [True] * count

    talk(work, answer)


# --- calls


def test_call_may_come_byte_by_byte() -> None:
    async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in ASK % (3, b"abc"):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        assert await read_answer(reader) == (b"HTTP/1.1 200 OK", b"POST abc")

    talk(work)


def test_calls_at_once_are_answered_in_order() -> None:
    """More than may wait, the first ones the slowest; then the connection still serves."""
    count = 3 * WAITING_MAX

    async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls = [ASK.replace(b"echo", b"echo?turns=%d" % (count - one)) % (2, b"%02d" % one) for one in range(count)]
        writer.write(b"".join(calls))
        assert [(await read_answer(reader))[1] for _ in range(count)] == [b"POST %02d" % one for one in range(count)]
        writer.write(ASK % (4, b"more"))
        assert (await read_answer(reader))[1] == b"POST more"

    talk(work)


def test_body_in_chunks_is_awaited_and_the_last_call_closes() -> None:
    async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        writer.write(head)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert (await read_answer(reader))[1] == b"POST abcde"
        assert await reader.read() == b""

    talk(work)


def test_stream_is_handed_over_for_good() -> None:
    async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(ASK % (3, b"abc"))
        await read_answer(reader)
        wanted = b"GET /v1/stream HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
        writer.write(wanted[:5])
        await writer.drain()
        await asyncio.sleep(0)
        writer.write(wanted[5:])
        assert await reader.readexactly(len(b"stream:" + wanted)) == b"stream:" + wanted
        writer.write(b"more")
        assert await reader.readexactly(11) == b"stream:more"

    talk(work)

"""HTTP/1.1 for calls: one request with a body, one answer; httptools parses.

A device that sends one message per request pays for the request more than for the message, so nothing stands between
the parser and the doors. Answers leave in the order of their requests. A connection that asks for a stream is handed,
for good, to whoever serves streams.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import cast

import httptools

HEAD_BYTES_MAX = 16 << 10
"""Of a request line and its headers; ours have a few hundred."""
BODY_BYTES_MAX = 16 << 20
"""A batch of series; larger ones are sent in parts."""
WAITING_MAX = 16
"""Requests of one connection that came before their turn; it is not read from while there are more."""
IDLE_S_MAX = 75
"""A connection without a request for this long is closed; clients keep theirs for 15 seconds or so."""
OPENING_BYTES = 16
"""The shortest request line, which tells whether a stream is wanted."""
STREAMS = b"GET /v1/events", b"GET /v1/stream"
OK = "HTTP/1.1 200 OK\r\n"
OCTETS, JSON = "application/octet-stream", "application/json"


@dataclass(slots=True)
class Call:
    method: str = ""
    target: bytes = b""
    """Path and query."""
    authorization: str = ""
    body: bytes = b""
    keeps_alive: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes = b""
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = OCTETS
    headers: str = ""
    """Further ones, each with its line end."""

    def encode(self, *, keeps_alive: bool) -> bytes:
        line = OK if self.status is HTTPStatus.OK else f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
        further = self.headers if keeps_alive else f"{self.headers}Connection: close\r\n"
        head = f"{line}Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n{further}\r\n"
        return head.encode() + self.body


AnswerCall = Callable[[Call], Awaitable[Answer]]


class Stage(Enum):
    """How much of a request was parsed."""

    NOTHING = 0
    LINE = 1
    """Its beginning, not all of its headers."""
    HEAD = 2


class CallProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, answer: AnswerCall, make_stream: Callable[[], asyncio.Protocol]) -> None:
        self.answer = answer
        self.make_stream = make_stream
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self.parser = httptools.HttpRequestParser(self)
        self.opening = b""
        """Of a request whose first bytes do not yet tell what it is."""
        self.stage = Stage.NOTHING
        self.call = Call()
        self.parts: list[bytes] = []
        self.room = HEAD_BYTES_MAX
        """Bytes that this stage may still have."""
        self.waiting: deque[Call] = deque()
        self.work: asyncio.Task[None] | None = None
        self.is_paused = False
        self.drained: asyncio.Future[None] | None = None
        """While the caller does not take its answers as fast as they are made."""
        self.active_at = self.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self.watch()

    def watch(self) -> None:
        """Close a connection that is idle; look again when it may be."""
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        idle_s = self.loop.time() - self.active_at
        if idle_s >= IDLE_S_MAX and self.work is None:
            self.transport.close()
        else:
            self.loop.call_later(max(IDLE_S_MAX - idle_s, 1), self.watch)

    def data_received(self, data: bytes) -> None:
        if self.stage is Stage.NOTHING and self.work is None:
            data = self.opening + data
            if len(data) < OPENING_BYTES:
                self.opening = data
                return
            self.opening = b""
            if data.startswith(STREAMS):
                self.hand_over(data)
                return
        if self.stage is not Stage.HEAD:
            self.room -= len(data)
        self.parse(data)

    def hand_over(self, data: bytes) -> None:
        protocol = self.make_stream()
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(data)

    def parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.refuse(HTTPStatus.BAD_REQUEST)
            return
        if self.room < 0:
            self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def refuse(self, status: HTTPStatus) -> None:
        """What is no request ends its connection."""
        self.transport.write(Answer(status=status).encode(keeps_alive=False))
        self.transport.close()

    # --- httptools

    def on_message_begin(self) -> None:
        self.call, self.parts, self.stage = Call(), [], Stage.LINE

    def on_url(self, part: bytes) -> None:
        self.call.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        match name.lower():
            case b"authorization":
                self.call.authorization = value.decode("latin-1")
            case b"expect":
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_headers_complete(self) -> None:
        self.stage, self.room = Stage.HEAD, BODY_BYTES_MAX
        self.call.method = self.parser.get_method().decode()
        self.call.keeps_alive = self.parser.should_keep_alive()

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)
        self.room -= len(part)

    def on_message_complete(self) -> None:
        if self.room < 0:
            return  # it is refused when its last part is parsed
        self.call.body = b"".join(self.parts)
        self.stage, self.room, self.active_at = Stage.NOTHING, HEAD_BYTES_MAX, self.loop.time()
        self.waiting.append(self.call)
        if self.work is None:
            self.work = self.loop.create_task(self.serve())
        elif len(self.waiting) > WAITING_MAX and not self.is_paused:
            self.is_paused = True
            self.transport.pause_reading()

    # --- answers

    def pause_writing(self) -> None:
        self.drained = self.loop.create_future()

    def resume_writing(self) -> None:
        if self.drained is not None:
            self.drained.set_result(None)
            self.drained = None

    def connection_lost(self, error: Exception | None) -> None:
        self.waiting.clear()
        self.resume_writing()

    async def serve(self) -> None:
        """Answer what waits; a door that fails ends the connection, since its caller would wait for ever."""
        with ExitStack() as failing:
            failing.callback(self.transport.abort)
            try:
                await self._answer_waiting()
            finally:
                self.work = None
            failing.pop_all()
        if self.is_paused and not self.transport.is_closing():
            self.is_paused = False
            self.transport.resume_reading()

    async def _answer_waiting(self) -> None:
        while self.waiting:
            call = self.waiting.popleft()
            answer = await self.answer(call)
            self.transport.write(answer.encode(keeps_alive=call.keeps_alive))
            if not call.keeps_alive:
                self.transport.close()
            if self.drained is not None:
                await self.drained

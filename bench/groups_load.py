"""Devices that load a group server: closed loops of batches over streams, or of single messages over HTTP.

Devices here seal nothing: their ciphertexts are random bytes of the right lengths, since the server cannot tell. A
message to n recipients is delivered n times, to its sender too.
"""

import asyncio
import os
import random
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import aiohttp
from nacl.signing import SigningKey

from proofcast.groups.frame import EntryKind
from proofcast.groups.identity import KeyBundle
from proofcast.groups.io.connection import Connection, connect
from proofcast.groups.io.launch import LaunchedServer
from proofcast.groups.io.stream import CALL, StreamKind
from proofcast.groups.link import encode_list, parse_list
from proofcast.groups.series import Envelope, Form, Message, Series

COUNTER = slice(33, 41)
"""Of an encoded series."""
LEAF_NEXT = slice(227, 235)
"""Where the range of a packet ends."""
WARM_UP_S = 1.0
DELETE_S = 0.5
POLL_S = 3.0
LENGTH_FIELD = re.compile(rb"(?i)content-length: (\d+)")
CIPHERTEXT_BYTES = 267
"""Per recipient, as the paper's server benchmark has it; ours are 127."""


@dataclass(frozen=True, slots=True)
class Work:
    """What every sender repeats."""

    senders: int = 16
    batch: int = 64
    common: int = 1_024
    recipients: int = 4
    pool: int = 64
    """Devices among which recipients are chosen; small means that many share an inbox."""
    seconds: float = 4.0


@dataclass(slots=True)
class Measured:
    deliveries: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    """Of all processes of the server."""
    delays: list[float] = field(default_factory=list)
    is_over: bool = False
    """Senders finish the batch they are at."""

    @property
    def per_s(self) -> float:
        return self.deliveries / self.wall_s

    @property
    def per_core_s(self) -> float:
        """What one core that does nothing else would deliver."""
        return self.deliveries / self.cpu_s

    def get_delay_ms(self, part: float) -> float:
        return 1000 * sorted(self.delays)[int(part * (len(self.delays) - 1))]


@dataclass(slots=True)
class Sender:
    """A device that sends the same bodies again and again, with new counters."""

    device: bytes
    bodies: list[bytearray]
    counter: int = 0

    def number(self) -> list[bytes]:
        for body in self.bodies:
            self.counter += 1
            body[COUNTER] = self.counter.to_bytes(8, "big")
        return [bytes(body) for body in self.bodies]


def make_bodies(device: bytes, work: Work, pool: list[bytes], dice: random.Random) -> list[bytearray]:
    others = [one for one in pool if one != device]
    return [bytearray(make_series(device, work, dice.sample(others, work.recipients - 1))) for _ in range(work.batch)]


def make_series(device: bytes, work: Work, others: list[bytes]) -> bytes:
    envelopes = [Envelope(one, Form.NORMAL, os.urandom(CIPHERTEXT_BYTES)) for one in sorted({device, *others})]
    return Series(device, 0, (Message(device, os.urandom(work.common), tuple(envelopes)),)).encode()


@dataclass(slots=True)
class Loader:
    """One device with its connection."""

    device: bytes
    connection: Connection
    stream: aiohttp.ClientWebSocketResponse
    counter: int
    end: int = 0
    waiting: dict[int, asyncio.Future[None]] = field(default_factory=dict)

    async def receive(self) -> None:
        """Take packets and answers until cancelled."""
        async for message in self.stream:
            kind = message.data[0]
            if kind == StreamKind.PACKET:
                self.end = int.from_bytes(message.data[LEAF_NEXT], "big")
            elif kind == StreamKind.ANSWER:
                answered = self.waiting.pop(int.from_bytes(message.data[1:5], "big"), None)
                if answered is not None and not answered.done():
                    answered.set_result(None)
            elif kind == StreamKind.REFUSAL:
                raise AssertionError(message.data[5:].decode())

    async def delete(self) -> None:
        while True:
            await asyncio.sleep(DELETE_S)
            await self.stream.send_bytes(CALL.pack(0, EntryKind.DELETE) + self.end.to_bytes(8, "big"))

    async def send_batch(self, sender: Sender) -> None:
        number = sender.counter + 1
        self.waiting[number] = answered = asyncio.get_running_loop().create_future()
        await self.stream.send_bytes(CALL.pack(number, EntryKind.SERIES) + encode_list(sender.number()))
        await answered


class Caller(asyncio.Protocol):
    """One kept connection, one HTTP request under way; a full client would cost more than the server it measures."""

    def __init__(self, token: str) -> None:
        self.head = f"HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\nContent-Length: "
        self.buffer = b""
        self.transport: asyncio.Transport
        self.answer: asyncio.Future[bytes]
        self.turn = asyncio.Lock()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        length = int(LENGTH_FIELD.findall(head)[0]) if found else 0
        if found and len(body) >= length:
            assert head.startswith(b"HTTP/1.1 200"), self.buffer
            self.buffer = b""
            if not self.answer.done():
                self.answer.set_result(body)

    async def call(self, request: str, body: bytes = b"") -> bytes:
        async with self.turn:
            self.answer = asyncio.get_running_loop().create_future()
            self.transport.write(f"{request} {self.head}{len(body)}\r\n\r\n".encode() + body)
            return await self.answer


@dataclass(slots=True)
class Poller:
    """One device that sends with a request per batch and asks for what came every few seconds."""

    device: bytes
    connection: Connection
    caller: Caller
    """For sending."""
    reader: Caller
    counter: int = 0
    end: int = 0

    async def receive(self) -> None:
        while True:
            await asyncio.sleep(POLL_S * random.uniform(0.5, 1.5))
            answer = await self.reader.call(f"GET /v1/inbox?after={self.end}")
            for packet in parse_list(answer) if answer else []:
                self.end = int.from_bytes(packet[LEAF_NEXT], "big")
            await self.reader.call(f"DELETE /v1/inbox?before={self.end}")

    async def send_batch(self, sender: Sender) -> None:
        await self.caller.call("POST /v1/series", encode_list(sender.number()))


async def open_caller(connection: Connection) -> Caller:
    parts = urlsplit(connection.url)
    assert parts.hostname, connection.url
    assert parts.port, connection.url
    token = connection.headers["Authorization"].removeprefix("Bearer ")
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(lambda: Caller(token), parts.hostname, parts.port))[1]


async def repeat(loader: Loader | Poller, sender: Sender, recipients: int, measured: Measured) -> None:
    while not measured.is_over:
        began = time.perf_counter()
        await loader.send_batch(sender)
        loader.counter = sender.counter
        measured.delays.append(time.perf_counter() - began)
        measured.deliveries += len(sender.bodies) * recipients


@asynccontextmanager
async def open_pollers(server: LaunchedServer, keys: list[SigningKey]) -> AsyncIterator[list[Poller]]:
    """Devices that are registered, and use plain HTTP for everything."""
    async with AsyncExitStack() as stack:
        pollers = await asyncio.gather(*(open_poller(stack, server, key) for key in keys))
        reading = [asyncio.ensure_future(poller.receive()) for poller in pollers]
        try:
            yield pollers
        finally:
            await finish(reading)


async def open_poller(stack: AsyncExitStack, server: LaunchedServer, key: SigningKey) -> Poller:
    connection = await stack.enter_async_context(connect(server.url, server.running.server_key, key))
    await connection.publish(make_key_bundle(key))
    callers = await open_caller(connection), await open_caller(connection)
    return Poller(bytes(key.verify_key), connection, *callers)


@asynccontextmanager
async def open_loaders(server: LaunchedServer, keys: list[SigningKey]) -> AsyncIterator[list[Loader]]:
    """Devices that are registered, receive, and delete what they received."""
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        loaders = await asyncio.gather(*(open_loader(stack, server, key) for key in keys))
        running = [tasks.create_task(work) for one in loaders for work in (one.receive(), one.delete())]
        try:
            yield loaders
        finally:
            for task in running:
                task.cancel()


async def open_loader(stack: AsyncExitStack, server: LaunchedServer, key: SigningKey) -> Loader:
    connection = await stack.enter_async_context(connect(server.url, server.running.server_key, key))
    facts = await connection.get_facts()
    if not facts.registered:
        await connection.publish(make_key_bundle(key))
    url = f"{connection.url}/v1/stream"
    socket = connection.session.ws_connect(url, headers=connection.headers, max_msg_size=0)
    return Loader(bytes(key.verify_key), connection, await stack.enter_async_context(socket), facts.counter)


def make_key_bundle(key: SigningKey) -> bytes:
    unsigned = KeyBundle(bytes(key.verify_key), b"c" * 32, True, b"k" * 32, b"")
    return unsigned.encode() + key.sign(unsigned.get_signed_bytes()).signature


async def measure(server: LaunchedServer, loaders: Sequence[Loader | Poller], work: Work) -> Measured:
    dice, measured = random.Random(1), Measured()
    pool, tasks = [loader.device for loader in loaders[-work.pool :]], []
    for loader in loaders[: work.senders]:
        sender = Sender(loader.device, make_bodies(loader.device, work, pool, dice), loader.counter)
        tasks.append(asyncio.ensure_future(repeat(loader, sender, work.recipients, measured)))
    await asyncio.sleep(WARM_UP_S)
    measured.deliveries, measured.delays = 0, []
    began, cpu = time.perf_counter(), get_group_cpu_s(server.process.pid)
    await asyncio.sleep(work.seconds)
    wall_s, cpu_s = time.perf_counter() - began, get_group_cpu_s(server.process.pid) - cpu
    found = Measured(measured.deliveries, wall_s, cpu_s, list(measured.delays))
    measured.is_over = True
    await asyncio.gather(*tasks)
    return found


async def finish(tasks: Sequence[asyncio.Future[None]]) -> None:
    """Stop reading; an error of a reader is one of the measurement."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(result, asyncio.CancelledError):
            raise AssertionError(f"a reader ended: {result!r}")


def get_group_cpu_s(group: int) -> float:
    """CPU seconds of all living processes of a process group."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")

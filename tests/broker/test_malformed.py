"""Peers that misbehave at the doors: whatever they send or do not read, the others get every event and nothing is left
behind when they go."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_network
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from proofcast.broker.io.http import Settings
from proofcast.testing.broker.publications import Publications
from proofcast.testing.broker.serving import open_broker

SEED = 7
STREAM = "/api/v1/events/stream?start=oldest"
HEAD = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /api/v1/subscriptions" + HEAD
UPGRADE = (
    b"GET /api/v1/ws" + HEAD + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
START = json.dumps({"type": "start", "ephemeral": True, "options": {"firstEvent": "oldest"}}).encode()


def build_frame(payload: bytes, opcode: int = 1, claimed: int | None = None) -> bytes:
    """As a client sends it, masked with zeros; `claimed` is the length that its head names."""
    length = len(payload) if claimed is None else claimed
    head = bytes([0x80 | opcode])
    if length < 126:
        return head + bytes([0x80 | length]) + bytes(4) + payload
    return head + bytes([0x80 | 127]) + length.to_bytes(8) + bytes(4) + payload


RAW: dict[str, bytes] = {
    "no HTTP": b"\x16\x03\x01\x02\x00" + bytes(512),
    "half a request": b"GET /api/v1/events/str",
    "header without end": b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000,
    "body shorter than said": POST + b"Content-Length: 99\r\n\r\n{",
    "two lengths": POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    "chunk of nonsense": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "last id of nonsense": b"GET " + STREAM.encode() + HEAD + b"Last-Event-ID: \xff\xfe\r\n\r\n",
    "frame that claims gigabytes": UPGRADE + build_frame(b"x" * 64, claimed=2**40),
    "unknown opcode": UPGRADE + build_frame(b"x", opcode=7),
    "text that is no text": UPGRADE + build_frame(b"\xff\xfe\xfd"),
    "unmasked frame": UPGRADE + b"\x81\x02{}",
    "fragments without end": UPGRADE + b"".join(b"\x01\x81\0\0\0\0x" for _ in range(3)),
    "upgrade, then nothing": UPGRADE,
    "started, never read": UPGRADE + build_frame(START),
}


async def open_raw(url: str, data: bytes) -> asyncio.StreamWriter:
    """Send it, and leave the connection as it is: nothing is read."""
    host, port = url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    with suppress(ConnectionError):
        writer.write(data)
        await writer.drain()
    return writer


async def read_sequences(url: str, count: int) -> list[int]:
    """What an ordinary reader of the stream gets."""
    found: list[int] = []
    async with aiohttp.ClientSession() as session, session.get(url + STREAM) as stream:
        async for line in stream.content:
            if line.startswith(b"data: ") and b"sequence" in line:
                found.append(int(json.loads(line[6:])["sequence"]))
            if len(found) == count:
                return found
    return found


async def count_connections(url: str) -> float:
    """Subscribers that the broker believes to have."""
    async with aiohttp.request("GET", url + "/metrics") as response:
        families = text_string_to_metric_families(await response.text())
    return sum(
        sample.value for family in families if family.name == "proofcast_connections" for sample in family.samples
    )


async def wait_until_nobody_is_left(url: str) -> None:
    async with asyncio.timeout(60):
        while await count_connections(url):
            pass


async def run_beside(folder: Path, misbehave: Callable[[str], Awaitable[list[asyncio.StreamWriter]]]) -> None:
    """Others misbehave; an ordinary reader gets everything that is published before and meanwhile."""
    story = Publications(folder, SEED)
    story.publish(3)
    async with open_broker(folder) as url:
        writers = await misbehave(url)
        await asyncio.to_thread(story.publish, 3)
        async with asyncio.timeout(60):
            assert await read_sequences(url, 6) == [1, 2, 3, 4, 5, 6]
        for writer in writers:
            writer.transport.abort()
        await wait_until_nobody_is_left(url)


@pytest.mark.parametrize("data", RAW.values(), ids=RAW)
@pytest.mark.slow
def test_nonsense_harms_nobody(data: bytes, tmp_path: Path) -> None:
    async def misbehave(url: str) -> list[asyncio.StreamWriter]:
        return [await open_raw(url, data) for _ in range(3)]

    asyncio.run(run_beside(tmp_path, misbehave))


def test_random_bytes_harm_nobody(tmp_path: Path) -> None:
    dice = random.Random(SEED)

    async def misbehave(url: str) -> list[asyncio.StreamWriter]:
        sent = [dice.choice((b"", UPGRADE)) + dice.randbytes(dice.randrange(300)) for _ in range(60)]
        return [await open_raw(url, data) for data in sent]

    asyncio.run(run_beside(tmp_path, misbehave))


@pytest.mark.slow
def test_readers_that_do_not_read_delay_nobody(tmp_path: Path) -> None:
    """Far more is published than sockets hold: the broker waits for them alone."""
    request = f"GET {STREAM} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    started = UPGRADE + build_frame(json.dumps(json.loads(START) | {"autoack": True}).encode())

    async def scenario() -> None:
        story = Publications(tmp_path, SEED)
        async with open_broker(tmp_path) as url:
            stuck = [await open_raw(url, data) for data in (request, started) for _ in range(4)]
            for _ in range(20):
                await asyncio.to_thread(story.publish, 500)
            async with asyncio.timeout(60):
                assert await read_sequences(url, 10_000) == list(range(1, 10_001))
            for writer in stuck:
                writer.transport.abort()
            await wait_until_nobody_is_left(url)

    asyncio.run(scenario())


ANSWERS: dict[str, bytes] = {
    "nothing at all": b"",
    "no HTTP": b"hello\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "wrong status": b"HTTP/1.1 two hundred\r\n\r\n",
    "head without end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000,
    "redirection to itself": b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
    "switched protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
}


@pytest.mark.parametrize("said", ANSWERS.values(), ids=ANSWERS)
def test_receiver_of_nonsense_is_tried_again_and_delays_nobody(said: bytes, tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Publications(tmp_path, SEED)
        story.publish(3)
        taken: asyncio.Queue[bytes] = asyncio.Queue()
        settings = Settings(allowed_receivers=(ip_network("127.0.0.1"),))
        async with (
            open_receiver(said) as bad,
            open_receiver(b"HTTP/1.1 204 No Content\r\n\r\n", taken) as good,
            open_broker(tmp_path, settings) as url,
        ):
            await create_webhook(url, "bad", bad)
            await create_webhook(url, "good", good)
            async with asyncio.timeout(60):
                assert (await read_attempt(url, "bad"))["outcome"] == "postpone"
                for sequence in (1, 2, 3):
                    assert int(json.loads(await taken.get())["sequence"]) == sequence

    asyncio.run(scenario())


@asynccontextmanager
async def open_receiver(said: bytes, taken: asyncio.Queue[bytes] | None = None) -> AsyncIterator[str]:
    """Takes one request per connection, says this and hangs up; its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
            body = await reader.readexactly(length)
            if taken is not None:
                taken.put_nowait(body)
            writer.write(said)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def create_webhook(url: str, name: str, receiver: str) -> None:
    body = {"name": name, "transport": "webhook", "start": "oldest", "options": {"url": receiver}}
    async with aiohttp.request("POST", url + "/api/v1/subscriptions", json=body) as response:
        assert response.status == 201, await response.text()


async def read_attempt(url: str, name: str) -> dict[str, object]:
    """The first one, once there is one."""
    while True:
        async with aiohttp.request("GET", f"{url}/api/v1/subscriptions/{name}/deliveries") as response:
            if found := (await response.json())["deliveries"]:
                return found[-1]

"""Webhooks: signed deliveries to a receiver on this machine, each written down before and after it is sent."""

import asyncio
import json
import multiprocessing
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import uvloop

from bench.broker_load import PAYLOAD_BYTES, BrokerProcess, run_broker, wait_until
from bench.report import Row
from proofcast.onchain.events import Published
from proofcast.testing.broker.publications import PUBLISHER, encode_published
from proofcast.testing.feed.story import START, Story

TOPICS = 64
"""One delivery of each may be on its way."""
EVENTS_PER_BLOCK = 500
SUBSCRIPTIONS = "/api/v1/subscriptions"


def measure_webhooks(folder: Path, events: int) -> list[Row]:
    """Deliveries per second of CPU time of the broker, from an empty store to everything acknowledged on disk."""
    publish(folder, events)
    with run_receiver() as (url, taken), run_broker(folder, "--allow-receiver", "127.0.0.1") as broker:
        began_s, cpu_s = time.monotonic(), broker.measure_cpu_s()
        options = {"transport": "webhook", "options": {"url": url}}
        ask(broker, SUBSCRIPTIONS, {"name": "bench", "start": "oldest", **options})
        wait_until(lambda: taken.value >= events and ask(broker, f"{SUBSCRIPTIONS}/bench")["acknowledged"] == events)
        cpu_s, wall_s = broker.measure_cpu_s() - cpu_s, time.monotonic() - began_s
    anchor = f"1 kB events, {TOPICS} topics, HMAC, SQLite; {events / wall_s:,.0f}/s by the clock"
    return [Row("webhooks per CPU second of the broker", round(events / cpu_s), "/s", 4_000, "higher", anchor)]


def publish(folder: Path, events: int) -> None:
    story, at = Story(folder, 1), START
    for first in range(0, events, EVENTS_PER_BLOCK):
        logs = []
        for number in range(first, min(events, first + EVENTS_PER_BLOCK)):
            topic, sequence = (number % TOPICS).to_bytes(32), number // TOPICS + 1
            payload = story.random.randbytes(PAYLOAD_BYTES)
            logs.append(encode_published(Published(topic, sequence, bytes(32), PUBLISHER, payload)))
        block = story.make_block(at, logs)
        story.adopt([block])
        at = block.id


def ask(broker: BrokerProcess, path: str, body: object = None) -> dict[str, int]:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(broker.url + path, data)) as response:
        found: dict[str, int] = json.load(response)
        return found


# --- the receiver


class Sink(asyncio.Protocol):
    """Takes everything and looks at nothing but where a request ends."""

    def __init__(self, taken: "Synchronized[int]") -> None:
        self._taken, self._rest = taken, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        whole = self._rest + data
        while (head := whole.find(b"\r\n\r\n")) >= 0:
            length = int(whole[:head].lower().rpartition(b"content-length:")[2].split(b"\r\n")[0])
            if len(whole) < head + 4 + length:
                break
            whole = whole[head + 4 + length :]
            self._taken.value += 1
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        self._rest = whole


def receive(port: "Synchronized[int]", taken: "Synchronized[int]") -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Sink(taken), "127.0.0.1", 0)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    uvloop.run(serve())


@contextmanager
def run_receiver() -> Iterator[tuple[str, "Synchronized[int]"]]:
    """In a process of its own; its address, and how many requests it took."""
    port, taken = multiprocessing.Value("i", 0), multiprocessing.Value("i", 0)
    process = multiprocessing.Process(target=receive, args=(port, taken), daemon=True)
    process.start()
    try:
        wait_until(lambda: port.value > 0)
        yield f"http://127.0.0.1:{port.value}/", taken
    finally:
        process.terminate()
        process.join()

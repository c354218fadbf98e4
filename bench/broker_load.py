"""What loads a broker: feeds with a past, readers at plain sockets, and the broker as a process of its own."""

import os
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import TICKS_PER_S, read_fields
from proofcast.ethereum.receipt import Log
from proofcast.onchain.events import Published
from proofcast.testing.broker.publications import PUBLISHER, TOPIC, Publications, encode_published
from proofcast.testing.broker.serving import TOPICS

PAYLOAD_BYTES = 1_000
READ_BYTES = 1 << 20
WAIT_S_MAX = 180.0
"""Spark needs a minute to begin on a busy machine."""


class Payloads(Publications):
    """Publications of a kilobyte each, of which no two are alike."""

    def make_log(self) -> Log:
        self.published += 1
        payload = self.random.randbytes(PAYLOAD_BYTES)
        return encode_published(Published(TOPIC, self.published, bytes(32), PUBLISHER, payload))


def fill(folder: Path, events: int, per_block: int = 100) -> Payloads:
    story = Payloads(folder, 1)
    for _ in range(events // per_block):
        story.publish(per_block)
    return story


@dataclass(slots=True)
class BrokerProcess:
    url: str
    process: subprocess.Popen[str]

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    def measure_cpu_s(self) -> float:
        fields = read_fields(self.process.pid)
        assert fields, "the broker has died"
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


@contextmanager
def run_broker(folder: Path, *options: str) -> Iterator[BrokerProcess]:
    command = [sys.executable, "-m", "proofcast.cli", "broker", "serve", "--feed", str(folder), "--port", "0"]
    log = folder / "broker.log"
    with log.open("w") as output:
        process = subprocess.Popen([*command, "--topics", f"0x{TOPICS.hex()}", *options], stderr=output, text=True)
    try:
        wait_until(lambda: b"http://" in log.read_bytes() or process.poll() is not None)
        found = re.search(r"http://[\d.]+:\d+", log.read_text())
        assert found, log.read_text()
        yield BrokerProcess(found[0], process)
    finally:
        process.terminate()
        process.wait()


def wait_until(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S_MAX
    while not is_done():
        assert time.monotonic() < end, "what should happen does not"
        time.sleep(0.01)


@dataclass(slots=True)
class Reader:
    """One connection of server-sent events; counts deliveries by the line that each has once."""

    socket: socket.socket
    deliveries: int = 0
    heartbeats: int = 0
    last_s: float = 0.0
    """When the last delivery came."""
    _rest: bytes = b""

    def read(self) -> None:
        data = self.socket.recv(READ_BYTES)
        assert data, "the broker has hung up"
        whole = self._rest + data
        found = whole.count(b"\nevent: apply\n")
        self.heartbeats += whole.count(b"event: heartbeat\n")
        self._rest = whole[-20:] if not whole.endswith(b"\n\n") else b""
        if found:
            self.deliveries, self.last_s = self.deliveries + found, time.monotonic()


@dataclass(slots=True)
class Readers:
    """Many connections, read by one thread."""

    broker: BrokerProcess
    readers: list[Reader] = field(default_factory=list)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def connect(self, count: int, query: str) -> None:
        for _ in range(count):
            connection = socket.create_connection(self.broker.address)
            request = f"GET /api/v1/events/stream?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            connection.sendall(request.encode())
            self.readers.append(Reader(connection))
            self._selector.register(connection, selectors.EVENT_READ, self.readers[-1])
        self.read_until(lambda: all(reader.heartbeats > 1 or reader.deliveries for reader in self.readers))

    def read_until(self, is_done: Callable[[], bool]) -> None:
        end = time.monotonic() + WAIT_S_MAX
        while not is_done():
            assert time.monotonic() < end, "deliveries are missing"
            for key, _ in self._selector.select(1.0):
                key.data.read()

    @property
    def deliveries(self) -> int:
        return sum(reader.deliveries for reader in self.readers)

    def close(self) -> None:
        self._selector.close()
        for reader in self.readers:
            reader.socket.close()


def get_memory_mb(process: int | None = None) -> float:
    status = Path(f"/proc/{process or os.getpid()}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024

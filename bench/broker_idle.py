"""Ten thousand subscribers that wait, half of them at a stream and half at a WebSocket: what they cost the broker.

python -m bench.broker_idle             PROOFCAST_BENCH_SCALE=0.05 for a quick look
"""

import os
import selectors
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure

from bench.broker_load import BrokerProcess, fill, get_memory_mb, run_broker
from bench.report import RESULTS, Row, write_report

SCALE = float(os.environ.get("PROOFCAST_BENCH_SCALE", "1"))
CONNECTIONS = max(100, int(10_000 * SCALE))
STEP = max(20, CONNECTIONS // 20)
"""Connections between two looks at the broker's memory."""
IDLE_S = 60 * min(1.0, max(0.2, SCALE))
"""Long enough for several heartbeats and pings."""
WAIT_S_MAX = 120.0
MEMORY_MB_MAX = 1_024
HEAD = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
STREAM = b"GET /api/v1/events/stream?start=newest" + HEAD + b"\r\n"
UPGRADE = (
    b"GET /api/v1/ws?ephemeral&autoack&firstEvent=newest" + HEAD + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
PING, PONG = 0x89, 0x8A
MASKED_NOTHING = b"\x80\0\0\0\0"


@dataclass(slots=True)
class Idler:
    """One connection that says nothing but what keeps it alive."""

    socket: socket.socket
    is_stream: bool
    beats: int = 0
    """Heartbeats: after the second one it is up to date."""
    events: int = 0
    heard_s: float = 0.0
    is_lost: bool = False
    _rest: bytes = b""

    def read(self) -> None:
        data = self.socket.recv(1 << 16)
        self.is_lost = not data
        self._rest += data
        if self.is_stream:
            self._note(self._rest.rpartition(b"\n\n")[0])
            self._rest = self._rest.rpartition(b"\n\n")[2]
        else:
            for opcode, payload in self._split_frames():
                self._note(payload)
                if opcode == PING:
                    self.socket.sendall(bytes([PONG]) + MASKED_NOTHING)

    def _note(self, text: bytes) -> None:
        self.beats += text.count(b"heartbeat")
        found = text.count(b'"specversion"')
        if found:
            self.events, self.heard_s = self.events + found, time.monotonic()

    def _split_frames(self) -> Iterator[tuple[int, bytes]]:
        if self._rest.startswith(b"HTTP"):
            _, end, rest = self._rest.partition(b"\r\n\r\n")
            self._rest = rest if end else self._rest
        while len(self._rest) >= 2 and not self._rest.startswith(b"HTTP"):
            short = self._rest[1]
            width = {126: 2, 127: 8}.get(short, 0)
            length = int.from_bytes(self._rest[2 : 2 + width]) if width else short
            end = 2 + width + length
            if len(self._rest) < end:
                return
            yield self._rest[0], self._rest[2 + width : end]
            self._rest = self._rest[end:]


@dataclass(slots=True)
class Crowd:
    broker: BrokerProcess
    idlers: list[Idler] = field(default_factory=list)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def grow(self, count: int) -> None:
        """By so many, both kinds in turn; returns when they are up to date."""
        newcomers = [self._connect(at % 2 == 0) for at in range(count)]
        self.read_until(lambda: all(one.beats > 1 for one in newcomers))

    def _connect(self, is_stream: bool) -> Idler:
        idler = Idler(socket.create_connection(self.broker.address), is_stream)
        idler.socket.sendall(STREAM if is_stream else UPGRADE)
        self._selector.register(idler.socket, selectors.EVENT_READ, idler)
        self.idlers.append(idler)
        return idler

    def read_until(self, is_done: Callable[[], bool]) -> None:
        end = time.monotonic() + WAIT_S_MAX
        while not is_done():
            assert time.monotonic() < end, "what should come does not"
            for key, _ in self._selector.select(0.2):
                key.data.read()
                if key.data.is_lost:
                    self._selector.unregister(key.data.socket)

    def count_lost(self) -> int:
        return sum(one.is_lost for one in self.idlers)


def measure(folder: Path) -> tuple[list[Row], list[tuple[int, float]]]:
    story = fill(folder, 100)
    with run_broker(folder) as broker:
        crowd, memory = Crowd(broker), [(0, get_memory_mb(broker.process.pid))]
        while len(crowd.idlers) < CONNECTIONS:
            crowd.grow(min(STEP, CONNECTIONS - len(crowd.idlers)))
            memory.append((len(crowd.idlers), get_memory_mb(broker.process.pid)))
        began, cpu_s = time.monotonic(), broker.measure_cpu_s()
        crowd.read_until(lambda: time.monotonic() - began > IDLE_S)
        share = (broker.measure_cpu_s() - cpu_s) / (time.monotonic() - began)
        story.publish(1)
        published = time.monotonic()
        crowd.read_until(lambda: all(one.events or one.is_lost for one in crowd.idlers))
        delay_s = max(one.heard_s for one in crowd.idlers) - published
        peak, lost = get_memory_mb(broker.process.pid), crowd.count_lost()
    each_kb = 1024 * (memory[-1][1] - memory[0][1]) / CONNECTIONS
    anchor = f"{CONNECTIONS:,} idle connections, half SSE, half WebSocket"
    rows = [
        Row("memory of the broker", round(peak, 1), "MB", MEMORY_MB_MAX, "lower", anchor),
        Row("memory of one connection", round(each_kb, 1), "kB", None, "lower", anchor),
        Row("connections lost", lost, "", 0, "lower", f"{anchor}, {IDLE_S:.0f} s"),
        Row("CPU while nothing happens", round(100 * share, 1), "% of a core", None, "lower", anchor),
        Row("one event to all of them", round(delay_s, 2), "s", None, "lower", anchor),
    ]
    return rows, memory


def draw(memory: list[tuple[int, float]]) -> None:
    figure = Figure(figsize=(7, 2.8))
    axes = figure.subplots()
    axes.plot([count for count, _ in memory], [mb for _, mb in memory], ".-")
    axes.axhline(MEMORY_MB_MAX, ls="--", lw=0.8, color="C7")
    axes.set(xlabel="idle connections", ylabel="memory of the broker, MB", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(RESULTS / "broker_idle.svg")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="proofcast-") as folder:
        rows, memory = measure(Path(folder))
    draw(memory)
    return write_report("broker_idle", rows)


if __name__ == "__main__":
    sys.exit(main())

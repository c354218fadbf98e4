"""The server: its first process, which sequences, starts the others and ends with them."""

import asyncio
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from proofcast.errors import Reason, Unavailable
from proofcast.groups.cutter import IN_WORK_MAX, Cutter
from proofcast.groups.io.log import SegmentLog
from proofcast.groups.io.processes import PORT_BYTES, Link, LinkKind, Options, keep_memory, open_link, start_process
from proofcast.groups.io.recovery import FRAMES
from proofcast.groups.io.retirement import require_in_office
from proofcast.groups.io.serverkey import load_server_key
from proofcast.groups.link import Message

STOP_S_MAX = 5
MODULES = "proofcast.groups.io"
SEGMENTS_MAX = 8
"""Segments between two snapshots: half a gigabyte of log, a few seconds to read after a crash."""
SEGMENTS_KEPT = 3
"""The newest ones stay as they are: most of what was delivered in the others has been deleted since, and does not go
into the snapshot."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a server tells when its doors are open."""

    server_key: bytes
    urls: tuple[str, ...]
    """One per shard."""
    epoch: int
    """The last frame of its log."""


@dataclass(slots=True)
class Child:
    """Another process of the server, and how to speak with it."""

    process: subprocess.Popen[bytes]
    ready: asyncio.Future[int]
    """Its port, of a shard."""
    link: Link
    done: int
    """The last frame that it has taken from the log."""


class Sequencer:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.folder = Path(options.folder)
        require_in_office(self.folder)
        self.key = load_server_key(self.folder)
        self.log = SegmentLog(self.folder / FRAMES, segment_bytes_max=options.segment_bytes_max)
        self.cutter = Cutter(options.epoch_s, options.idle_s, time.monotonic())
        self.children: list[Child] = []
        self.changed = asyncio.Event()
        self.stopped = asyncio.Event()
        self.compactor: subprocess.Popen[bytes] | None = None
        self.compact_at = SEGMENTS_MAX

    @property
    def shards(self) -> list[Child]:
        """The attestor is the first child."""
        return self.children[1:]

    # --- starting and stopping

    async def start(self) -> Running:
        """The attestor first: shards read what it has closed."""
        last = self.log.next_number - 1
        between = [socket.socketpair() for _ in range(self.options.shards)]
        ends = {f"shard{number}": pair[0] for number, pair in enumerate(between)}
        await self.wait_ready(await self.start_child("attestor", ends, last=last))
        for number, pair in enumerate(between):
            await self.start_child("shard", {"attestor": pair[1]}, number=number, last=last)
        ports = [await self.wait_ready(shard) for shard in self.shards]
        for shard in self.shards:
            shard.link.send(LinkKind.READY, len(ports), b"".join(port.to_bytes(PORT_BYTES, "big") for port in ports))
        urls = self.options.get_urls(ports)
        return Running(self.key.public, tuple(urls), last)

    async def start_child(self, name: str, ends: dict[str, socket.socket], *, last: int, **facts: int) -> Child:
        ours, theirs = socket.socketpair()
        process = start_process(f"{MODULES}.{name}", self.options, {"sequencer": theirs, **ends}, last=last, **facts)
        ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def receive(message: Message) -> None:
            if message.kind == LinkKind.READY:
                ready.set_result(message.number)
            elif message.kind == LinkKind.DONE:
                self.note_done(child, message.number)
            else:
                self.receive(message)

        child = Child(process, ready, await open_link(ours, receive), last)
        child.link.closed.add_done_callback(lambda _: self.end())
        self.children.append(child)
        return child

    async def wait_ready(self, child: Child) -> int:
        await asyncio.wait([child.ready, child.link.closed], return_when=asyncio.FIRST_COMPLETED)
        if not child.ready.done():
            message = f"a process of the server ended with code `{child.process.wait()}` before it was ready"
            raise Unavailable(Reason.NO_ANSWER, message, hint="its own words stand above")
        return child.ready.result()

    def end(self) -> None:
        """No further frame."""
        self.stopped.set()
        self.changed.set()

    def stop(self) -> None:
        """Nothing needs tidying up: what was promised is durable."""
        for child in self.children:
            child.process.terminate()
        if self.compactor is not None:
            self.compactor.terminate()
            self.compactor.wait()
        for child in self.children:
            try:
                child.process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()
        self.log.close()

    # --- sequencing

    def receive(self, message: Message) -> None:
        if message.kind == LinkKind.ENTRIES:
            self.cutter.add(message.number, message.body)
        elif message.kind == LinkKind.FULL:
            for shard in self.shards:
                shard.link.send(LinkKind.FULL, message.number, message.body)
        self.changed.set()

    def note_done(self, child: Child, epoch: int) -> None:
        """A frame is done when everybody is done with it."""
        before = min(child.done for child in self.children)
        child.done = epoch
        for _ in range(before, min(child.done for child in self.children)):
            self.cutter.note_done()
        self.changed.set()

    async def sequence(self) -> None:
        """Cut frame after frame until the server stops."""
        while not self.stopped.is_set():
            delay = self.cutter.get_delay(time.monotonic())
            if delay == 0:
                self.append(*self.cutter.cut(time.monotonic()))
                await asyncio.sleep(0)
            else:
                self.changed.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.changed.wait(), delay)

    def append(self, *parts: bytes) -> None:
        """Durable first, known to anybody after."""
        number = self.log.append(*parts)
        if self.log.segments_begun >= self.compact_at:
            self.compact(number)
        for child in self.children:
            child.link.send(LinkKind.FRAME, number, self.log.place.encode())

    def compact(self, number: int) -> None:
        """Have what is closed for sure replaced by a snapshot, beside the work; `number` is the last durable frame."""
        last = min(number - IN_WORK_MAX, self.log.find_end_before(SEGMENTS_KEPT))
        self.compact_at = self.log.segments_begun + SEGMENTS_MAX
        if self.compactor is None or self.compactor.poll() is not None:
            command = [sys.executable, "-m", f"{MODULES}.compactor", str(self.folder), str(last), str(number)]
            self.compactor = subprocess.Popen(command)


async def run_server(options: Options, announce: Callable[[Running], None]) -> None:
    """Serve until SIGTERM or SIGINT; raises `Unavailable` where a process of the server ended by itself."""
    keep_memory()
    sequencer = Sequencer(options)
    asked = asyncio.Event()

    def ask() -> None:
        asked.set()
        sequencer.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ask)
    try:
        announce(await sequencer.start())
        await sequencer.sequence()
    finally:
        sequencer.stop()
    if not asked.is_set():
        message = "a process of the server ended by itself"
        raise Unavailable(Reason.NO_ANSWER, message, hint="start it again; its own words stand above")

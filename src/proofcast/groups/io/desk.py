"""The desk of a shard: the state machine, its links to sequencer and attestor, and who waits for what."""

import asyncio
import time
from collections import deque
from contextlib import AbstractContextManager
from pathlib import Path

from proofcast.groups.attestor import COUNT, parse_shard_close
from proofcast.groups.frame import EntryKind
from proofcast.groups.inbox import Packet
from proofcast.groups.io.processes import EPOCH, PORT_BYTES, Link, LinkKind, Options
from proofcast.groups.io.reception import Arrivals, DeviceFacts
from proofcast.groups.io.recovery import recover_shard
from proofcast.groups.io.serverkey import load_server_key
from proofcast.groups.link import Message
from proofcast.groups.proof import Kind
from proofcast.groups.server import Answer

COUNT_AT = 41
"""Of a series: after version, sender and counter."""


class Desk:
    def __init__(self, options: Options, number: int, last: int) -> None:
        self.options = options
        self.key = load_server_key(Path(options.folder))
        self.shard = recover_shard(Path(options.folder), self.key, number, options.shards, last)
        self.ports: list[int] = []
        self.sequencer: Link
        self.outgoing: list[bytes] = []
        self.outgoing_messages = 0
        self.asked: deque[asyncio.Future[Answer]] = deque()
        """One for each entry of ours, series excepted, that is on its way into a frame, in order."""
        self.sent: dict[bytes, deque[tuple[int, asyncio.Future[int]]]] = {}
        """Series of a device, by counter, that wait for their receipt."""
        self.demands: dict[int, list[tuple[asyncio.Future[Answer], Answer]]] = {}
        """Of leaves, by the epoch whose close answers them."""
        self.arrivals = Arrivals()
        self.early: dict[int, bytes] = {}
        """Closes whose frame is still on its way: the two come over different links."""

    # --- doors

    @property
    def urls(self) -> list[str]:
        return self.options.get_urls(self.ports)

    def describe(self, device: bytes) -> DeviceFacts:
        client, directory = self.shard.look_up(device), self.shard.directory
        counters = client.accepted, client.attested
        inbox = client.inbox
        return DeviceFacts(device in directory, *counters, directory.count(device), inbox.size_bytes, inbox.deleted)

    def read(self, device: bytes, after: int) -> list[Packet]:
        return self.shard.look_up(device).inbox.read(after)

    async def ask(self, kind: EntryKind, device: bytes, body: bytes) -> bytes | None:
        """Have one request put into the log, and answer when it is durable."""
        self.send_entry(self.shard.accept(kind, device, body, time.time()))
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        return (await answer).body

    def send_series(self, device: bytes, batch: list[bytes]) -> asyncio.Future[int]:
        """Have series ordered; the future is done when the last of them is attested."""
        loop = asyncio.get_running_loop()
        repeated = len(batch) == 1 and self.shard.is_repeated(device, batch[0])
        for series in () if repeated else batch:
            self.send_entry(self.shard.accept(EntryKind.SERIES, device, series, time.time()))
            self.outgoing_messages += count_messages(series)
        counter, receipt = self.shard.get_client(device).accepted, loop.create_future()
        self.sent.setdefault(device, deque()).append((counter, receipt))
        if repeated and self.shard.get_client(device).attested >= counter:
            self.resolve(device, counter)
        return receipt

    def send_entry(self, entry: bytes) -> None:
        if not self.outgoing:
            asyncio.get_running_loop().call_soon(self.flush)
        self.outgoing.append(entry)

    def flush(self) -> None:
        """What came in during one turn of the loop goes out as one message."""
        self.sequencer.send(LinkKind.ENTRIES, COUNT.pack(self.outgoing_messages), b"".join(self.outgoing))
        self.outgoing, self.outgoing_messages = [], 0

    # --- the log

    def receive(self, message: Message) -> None:
        if message.kind == LinkKind.FRAME:
            (epoch,) = EPOCH.unpack_from(message.body)
            self.answer(epoch, self.shard.apply_frame(epoch, message.body[EPOCH.size :]))
            if epoch in self.early:
                self.deliver(epoch, self.early.pop(epoch))
        elif message.kind == LinkKind.CLOSED:
            (epoch,) = EPOCH.unpack_from(message.body)
            if epoch in self.shard.frames:
                self.deliver(epoch, message.body[EPOCH.size :])
            else:
                self.early[epoch] = message.body[EPOCH.size :]
        elif message.kind == LinkKind.FULL:
            self.shard.note_full(message.body[1:], message.body[0] == 1)
        elif message.kind == LinkKind.READY:
            starts = range(0, len(message.body), PORT_BYTES)
            self.ports = [int.from_bytes(message.body[at : at + PORT_BYTES], "big") for at in starts]
        self.announce_full()

    def answer(self, epoch: int, answers: list[Answer]) -> None:
        """What is durable is answered; who demanded a leaf waits until it is signed."""
        for answer in answers:
            future = self.asked.popleft()
            if answer.entry.kind == EntryKind.DEMAND:
                self.demands.setdefault(epoch, []).append((future, answer))
            elif not future.done():
                future.set_result(answer)
            if answer.entry.kind == EntryKind.CLAIM:
                self.arrivals.wake(answer.entry.body)

    def deliver(self, epoch: int, close: bytes) -> None:
        for future, answer in self.demands.pop(epoch, []):
            if not future.done():
                future.set_result(answer)
        for delivered in self.shard.apply_close(epoch, parse_shard_close(close)):
            self.arrivals.wake(delivered.client)
            if delivered.kind == Kind.SENT:
                self.resolve(delivered.client, self.shard.get_client(delivered.client).attested)

    def listen(self, device: bytes) -> AbstractContextManager[asyncio.Event]:
        return self.arrivals.listen(device)

    def resolve(self, device: bytes, counter: int) -> None:
        """Tell those who wait for receipts up to a counter."""
        waiting = self.sent.get(device, deque())
        while waiting and waiting[0][0] <= counter:
            number, receipt = waiting.popleft()
            if not receipt.done():
                receipt.set_result(number)

    def announce_full(self) -> None:
        for device, is_full in self.shard.full_changes:
            self.sequencer.send(LinkKind.FULL, bytes([is_full]), device)
        self.shard.full_changes.clear()


def count_messages(series: bytes) -> int:
    """Of a series that was parsed strictly just before."""
    return int.from_bytes(series[COUNT_AT : COUNT_AT + 2], "big")

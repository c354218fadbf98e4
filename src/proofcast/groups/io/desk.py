"""The desk of a shard: the state machine, its links to sequencer and attestor, and who waits for what."""

import asyncio
import time
from collections import deque
from contextlib import AbstractContextManager
from pathlib import Path

from proofcast.groups.frame import EntryKind
from proofcast.groups.inbox import Packet
from proofcast.groups.io.log import RecordReader, parse_place
from proofcast.groups.io.processes import PORT_BYTES, Link, LinkKind, Options
from proofcast.groups.io.reception import Arrivals, DeviceFacts
from proofcast.groups.io.recovery import FRAMES, recover_shard
from proofcast.groups.io.serverkey import load_server_key
from proofcast.groups.link import Message
from proofcast.groups.notice import Notice
from proofcast.groups.proof import Kind
from proofcast.groups.server import Accepted, Answer


class Desk:
    def __init__(self, options: Options, number: int, last: int) -> None:
        self.options = options
        self.key = load_server_key(Path(options.folder))
        self.shard = recover_shard(Path(options.folder), self.key, number, options.shards, last)
        self.frames = RecordReader(Path(options.folder) / FRAMES)
        self.shard.notice.witnesses = frozenset(map(bytes.fromhex, options.witnesses))
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

    @property
    def notice(self) -> Notice:
        return self.shard.notice

    def read(self, device: bytes, after: int) -> list[Packet]:
        return self.shard.look_up(device).inbox.read(after)

    async def ask(self, kind: EntryKind, device: bytes, body: bytes) -> bytes | None:
        """Have one request put into the log, and answer when it is durable."""
        self.send_entries(self.shard.accept(kind, device, body, time.time()))
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        return (await answer).body

    def send_series(self, device: bytes, batch: bytes) -> asyncio.Future[int]:
        """Have a list of series ordered; the future is done when the last of them is attested."""
        is_repeated = self.shard.is_repeated(device, batch)
        if not is_repeated:
            self.send_entries(self.shard.accept(EntryKind.SERIES, device, batch, time.time()))
        client = self.shard.get_client(device)
        receipt: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.sent.setdefault(device, deque()).append((client.accepted, receipt))
        if is_repeated and client.attested >= client.accepted:
            self.resolve(device, client.accepted)
        return receipt

    def send_entries(self, accepted: Accepted) -> None:
        if not self.outgoing:
            asyncio.get_running_loop().call_soon(self.flush)
        self.outgoing.append(accepted.entries)
        self.outgoing_messages += accepted.messages

    def flush(self) -> None:
        """What came in during one turn of the loop goes out as one message."""
        self.sequencer.send(LinkKind.ENTRIES, self.outgoing_messages, b"".join(self.outgoing))
        self.outgoing, self.outgoing_messages = [], 0

    # --- the log

    def receive(self, message: Message) -> None:
        epoch = message.number
        if message.kind == LinkKind.FRAME:
            self.answer(epoch, self.shard.apply_frame(epoch, self.frames.read(parse_place(message.body))))
            self.sequencer.send(LinkKind.DONE, epoch)
            if epoch in self.early:
                self.deliver(epoch, self.early.pop(epoch))
        elif message.kind == LinkKind.CLOSED:
            if epoch in self.shard.frames:
                self.deliver(epoch, message.body)
            else:
                self.early[epoch] = message.body
        elif message.kind == LinkKind.FULL:
            self.shard.note_full(message.body, bool(message.number))
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
        for kind, device in self.shard.apply_close(epoch, close):
            self.arrivals.wake(device)
            if kind is Kind.SENT:
                self.resolve(device, self.shard.get_client(device).attested)

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
            self.sequencer.send(LinkKind.FULL, is_full, device)
        self.shard.full_changes.clear()

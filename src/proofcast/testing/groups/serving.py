"""The lying server behind real doors, in memory and in one process, so that people can watch it being caught."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random

from nacl.signing import SigningKey

from proofcast.errors import InvalidRequest, Reason
from proofcast.groups.frame import EntryKind
from proofcast.groups.identity import parse_bundle
from proofcast.groups.inbox import Packet, split_bundles
from proofcast.groups.io.doors import open_doors
from proofcast.groups.io.processes import Options
from proofcast.groups.io.reception import Arrivals, DeviceFacts
from proofcast.groups.io.sequencer import Running
from proofcast.groups.io.serverkey import ServerKey
from proofcast.groups.link import parse_list
from proofcast.groups.notice import Notice
from proofcast.groups.packet import InboxPacket
from proofcast.groups.series import parse_series
from proofcast.testing.groups.lies import ServerLie
from proofcast.testing.groups.server import LyingServer


@dataclass(frozen=True, slots=True)
class Plan:
    """Which lie is told, to whom, and when."""

    lie: ServerLie
    victim: int
    """The first device to register is 1."""
    after: int
    """Packets of messages that the victim gets as they should be, before."""


class LyingReception:
    """Fulfils `Reception` with a server that signs what it likes."""

    def __init__(self, server: LyingServer, plan: Plan) -> None:
        self.server = server
        self.plan = plan
        self.key = ServerKey(server.key, b"secret of the lying server here.")
        self.urls: list[str] = []
        self.notice = Notice()
        self.arrivals = Arrivals()
        self.receipts: list[tuple[int, asyncio.Future[int]]] = []

    def describe(self, device: bytes) -> DeviceFacts:
        counter = self.server.counters.get(device, 0)
        keys, deleted = self.server.keys.get(device, []), self.server.deleted.get(device, 0)
        return DeviceFacts(device in self.server.keys, counter, counter, len(keys), 0, deleted)

    async def ask(self, kind: EntryKind, device: bytes, body: bytes) -> bytes | None:
        if kind == EntryKind.KEYS:
            self.server.publish([parse_bundle(bundle) for bundle in split_bundles(body)])
            if list(self.server.keys).index(device) + 1 == self.plan.victim:
                self.server.victim = device
        elif kind == EntryKind.CLAIM:
            bundle = self.server.claim_one(body)
            return bundle.encode() if bundle else None
        elif kind == EntryKind.DELETE:
            self.server.delete(device, int.from_bytes(body, "big"))
        elif kind == EntryKind.DEMAND:
            self.server.demands.add(device)
        return b""

    def send_series(self, device: bytes, batch: bytes) -> asyncio.Future[int]:
        receipt: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        counter = self.server.counters.get(device, 0)
        for series in map(parse_series, parse_list(batch)):
            counter += 1
            if series.counter != counter:
                message = f"the series has counter `{series.counter}` where `{counter}` is next"
                raise InvalidRequest(Reason.STALE_SEQUENCE, message, hint="read the inbox first", need=counter)
            self.server.submit(series.encode())
        self.receipts.append((counter, receipt))
        return receipt

    def read(self, device: bytes, after: int) -> list[Packet]:
        packets = self.server.inboxes.get(device, [])
        ends = [packet.attestation.checkpoint.epoch + 1 << 20 for packet in packets]
        found = [Packet(end, packet.encode()) for end, packet in zip(ends, packets, strict=True)]
        return [packet for packet in found if packet.end > after]

    def listen(self, device: bytes) -> AbstractContextManager[asyncio.Event]:
        return self.arrivals.listen(device)

    def is_time(self) -> bool:
        packets = self.server.history.get(self.server.victim or b"", [])
        return sum(isinstance(packet, InboxPacket) for packet in packets) >= self.plan.after

    async def close_epochs(self, epoch_s: float) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(epoch_s)
            if self.server.queue or self.server.demands:
                self.server.lie = self.plan.lie if self.is_time() else None
                self.server.close()
            for device in list(self.arrivals.waiting):
                self.arrivals.wake(device)
            waiting, self.receipts = self.receipts, []
            for counter, receipt in waiting:
                receipt.set_result(counter)


async def run_lying_server(options: Options, plan: Plan, announce: Callable[[Running], None]) -> None:
    """Serve until cancelled; everything is forgotten afterwards."""
    reception = LyingReception(LyingServer(SigningKey.generate(), Random()), plan)
    async with open_doors(reception, options.host, options.port) as port:
        reception.urls = [f"http://{options.host}:{port}"]
        announce(Running(reception.key.public, tuple(reception.urls), 0))
        await reception.close_epochs(options.epoch_s)

"""A scenario's stage of real libp2p hosts in this process: one thread runs them, the scenario calls from outside."""

import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import trio

from proofcast.errors import InvalidRequest, Reason
from proofcast.overlay.identity import Contact, Ed25519Signer, verify_ed25519
from proofcast.overlay.io.host import Host, open_host
from proofcast.overlay.outputs import Active, Admit, Deliver, Output
from proofcast.overlay.peer import Peer
from proofcast.overlay.records import EventId
from proofcast.overlay.settings import Settings
from proofcast.routing.attributes import EventAttributes, parse_attributes
from proofcast.routing.predicate import parse_predicate
from proofcast.testing.overlay.oracle import Delivery, Oracle, Publication, Subscription

LISTEN = "/ip4/127.0.0.1/tcp/0"
STEP_S = 0.02
SETTLE_S_MAX = 20.0
"""How long newly started hosts may take to find each other on a busy machine."""

Result = TypeVar("Result")
PublishMethod = Callable[[Peer, EventAttributes, bytes, float], tuple[EventId, list[Output]]]


@dataclass(slots=True)
class Running:
    host: Host
    stop: trio.Event
    stopped: trio.Event


class HostStage:
    """Use as a context manager. Splits are the simulator's alone: there is no network here to split."""

    def __init__(self) -> None:
        self.oracle = Oracle()
        self._hosts: dict[int, Running] = {}
        self._count = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._run,))

    def __enter__(self) -> "HostStage":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *reason: object) -> None:
        self._call(self._end)
        self._thread.join()

    async def _run(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as self._nursery:
            self._ended = trio.Event()
            self._ready.set()
            await self._ended.wait()

    async def _end(self) -> None:
        for index in list(self._hosts):
            await self._close(index)
        self._ended.set()

    def _call(self, function: Callable[[], Awaitable[Result]]) -> Result:
        return trio.from_thread.run(function, trio_token=self._token)

    # --- hosts

    async def _serve(self, index: int, settings: Settings, send: trio.MemorySendChannel[Running]) -> None:
        def make_peer(contact: Contact, signer: Ed25519Signer) -> Peer:
            now = time.time()
            return Peer(contact, signer, verify_ed25519, settings, session=time.time_ns(), entropy=index * 977, now=now)

        seed = (index + 1).to_bytes(32)
        async with open_host(seed, LISTEN, make_peer, partial(self._note, index)) as host:
            running = Running(host, trio.Event(), trio.Event())
            send.send_nowait(running)
            await running.stop.wait()
        running.stopped.set()

    async def _open(self, settings: Settings) -> None:
        index, self._count = self._count, self._count + 1
        send, receive = trio.open_memory_channel[Running](1)
        self._nursery.start_soon(self._serve, index, settings, send)
        running = await receive.receive()
        if self._hosts:
            entrance = self._hosts[min(self._hosts)].host.peer.seat.contact
            contact = await running.host.greet(entrance.address)
            running.host.carry_out(running.host.peer.join([contact], time.time()))
        self._hosts[index] = running
        with trio.move_on_after(SETTLE_S_MAX):
            while running.host.peer.seat.is_joining:
                await trio.sleep(STEP_S)

    async def _close(self, index: int) -> None:
        running = self._hosts.pop(index)
        running.stop.set()
        await running.stopped.wait()

    def _note(self, index: int, output: Output) -> None:
        match output:
            case Deliver(event):
                self.oracle.deliveries.append(Delivery(index, event.id, time.time()))
            case Active(predicate) | Admit(_, predicate, True):
                self.oracle.activate(index, predicate, time.time())

    # --- what a scenario asks for

    def add_peers(self, count: int, settings: Settings) -> None:
        for _ in range(count):
            self._call(partial(self._open, settings))

    def add_newcomers(self, count: int) -> None:
        self.add_peers(count, Settings())

    def _command(self, index: int, command: Callable[[Peer, float], list[Output]]) -> None:
        async def carry_out() -> None:
            host = self._hosts[index].host
            host.carry_out(command(host.peer, time.time()))

        self._call(carry_out)

    def subscribe(self, index: int, predicate: str) -> None:
        wanted = parse_predicate(predicate)
        self.oracle.add(Subscription(index, wanted, time.time()))
        self._command(index, lambda peer, now: peer.subscribe(wanted, now))

    def unsubscribe(self, index: int, predicate: str) -> None:
        wanted = parse_predicate(predicate)
        self.oracle.end(index, wanted, time.time())
        self._command(index, lambda peer, now: peer.unsubscribe(wanted, now))

    def publish(self, index: int, attributes: str) -> None:
        self._publish(index, attributes, Peer.publish)

    def publish_to_groups(self, index: int, attributes: str) -> None:
        self._publish(index, attributes, Peer.publish_to_groups)

    def _publish(self, index: int, attributes: str, publish: PublishMethod) -> None:
        content = parse_attributes(attributes)

        def command(peer: Peer, now: float) -> list[Output]:
            event_id, outputs = publish(peer, content, b"", now)
            self.oracle.publications[event_id] = Publication(event_id, now, content, index)
            return outputs

        self._command(index, command)

    def open_group(self, index: int, predicate: str) -> None:
        self._command(index, lambda peer, now: peer.open_group(parse_predicate(predicate), now))

    def enter_group(self, index: int, publisher: int, predicate: str) -> None:
        wanted = parse_predicate(predicate)
        self.oracle.add(Subscription(index, wanted, time.time()))
        contact = self._hosts[publisher].host.peer.seat.contact
        self._command(index, lambda peer, now: peer.join_group(contact, wanted, wanted, now))

    def crash(self, index: int) -> None:
        self._call(partial(self._close, index))

    def restart(self, index: int) -> None:
        raise InvalidRequest(Reason.BAD_ARGUMENT, "real hosts cannot `restart` here", hint="simulate this scenario")

    def split(self, *sides: list[int]) -> None:
        raise InvalidRequest(Reason.BAD_ARGUMENT, "real hosts cannot `split`", hint="simulate this scenario")

    def heal(self) -> None:
        raise InvalidRequest(Reason.BAD_ARGUMENT, "real hosts cannot `heal`", hint="simulate this scenario")

    def wait(self, seconds: float) -> None:
        """Until everything expected has come and every subscription is confirmed; the time is only a minimum."""
        self._call(partial(self._wait, seconds))

    async def _wait(self, seconds: float) -> None:
        await trio.sleep(seconds)
        with trio.move_on_after(SETTLE_S_MAX):
            while self.oracle.judge(self.get_present()).missing or self._is_waiting():
                await trio.sleep(STEP_S)

    def _is_waiting(self) -> bool:
        return any(one.active is None and one.peer in self._hosts for one in self.oracle.subscriptions)

    def get_present(self) -> set[int]:
        return set(self._hosts)

    def get_peer_count(self) -> int:
        return self._count

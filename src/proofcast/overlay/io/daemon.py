"""One peer as a process: a libp2p host, its stored state, and a local socket by which commands reach it.

The socket speaks JSON, one object per line. A request is `{"do": "subscribe", ...}`; the answer has `"ok"`, or
`"error"` with `"hint"` and `"code"`. After `watch` every delivered event follows as a line of its own.
"""

import base64
import json
import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio

from proofcast.errors import InvalidRequest, ProofcastError, Reason
from proofcast.overlay.allowance import BURST_MESSAGES, MESSAGES_PER_S
from proofcast.overlay.identity import Contact, Ed25519Signer, verify_ed25519
from proofcast.overlay.io.host import Host, make_peer_id, open_host
from proofcast.overlay.io.options import PeerOptions
from proofcast.overlay.io.store import PeerStore, draw_entropy, make_session
from proofcast.overlay.outputs import Abandon, Active, Deliver, Output, Settle, Store
from proofcast.overlay.peer import Peer
from proofcast.overlay.records import Event, EventId
from proofcast.overlay.settings import Settings
from proofcast.routing.attributes import parse_attributes
from proofcast.routing.predicate import parse_predicate

LINE_BYTES_MAX = 1 << 20
SAVE_CONTACTS_S = 10.0
RECENT_MAX = 1_000
"""Events kept for a watcher that comes after them."""
WAIT_S_MAX = 30.0
"""How long a command waits for the overlay to confirm before it answers that it has not yet."""


@dataclass(slots=True)
class Service:
    """The commands of a running peer."""

    store: PeerStore
    settings: Settings
    host: Host | None = None
    recent: deque[Event] = field(default_factory=lambda: deque(maxlen=RECENT_MAX))
    changed: trio.Event = field(default_factory=trio.Event)
    delivered: int = 0
    active: set[str] = field(default_factory=set)
    settled: dict[EventId, bool] = field(default_factory=dict)

    def make_peer(self, contact: Contact, signer: Ed25519Signer) -> Peer:
        marks = self.store.load_marks()
        return Peer(
            contact,
            signer,
            verify_ed25519,
            self.settings,
            session=make_session(),
            entropy=draw_entropy(),
            now=time.time(),
            marks=marks,
        )

    def get_host(self) -> Host:
        assert self.host is not None, "commands are served when the host runs"
        return self.host

    def note(self, output: Output) -> None:
        match output:
            case Store(mark):
                self.store.save_mark(mark)
            case Deliver(event):
                self.recent.append(event)
                self.delivered += 1
            case Active(predicate):
                self.active.add(str(predicate))
            case Settle(event_id):
                self.settled[event_id] = True
            case Abandon(event_id):
                self.settled[event_id] = False
        self.changed.set()
        self.changed = trio.Event()

    async def wait_for(self, is_so: Callable[[], bool]) -> bool:
        with trio.move_on_after(WAIT_S_MAX):
            while not is_so():
                await self.changed.wait()
        return is_so()

    # --- commands

    async def subscribe(self, request: dict[str, Any]) -> dict[str, Any]:
        predicate = parse_predicate(str(request["predicate"]))
        now = time.time()
        since = now - float(request.get("past_s") or 0)
        host = self.get_host()
        if predicate not in host.peer.scout.trunks.own:
            host.carry_out(host.peer.subscribe(predicate, now, since))
            self.store.save_subscription(str(predicate), since)
        is_active = await self.wait_for(lambda: str(predicate) in self.active)
        return {"predicate": str(predicate), "active": is_active}

    async def unsubscribe(self, request: dict[str, Any]) -> dict[str, Any]:
        predicate = parse_predicate(str(request["predicate"]))
        host = self.get_host()
        host.carry_out(host.peer.unsubscribe(predicate, time.time()))
        self.store.delete_subscription(str(predicate))
        self.active.discard(str(predicate))
        return {"predicate": str(predicate)}

    async def publish(self, request: dict[str, Any]) -> dict[str, Any]:
        attributes = parse_attributes(str(request["attributes"]))
        host = self.get_host()
        payload = base64.b64decode(request.get("payload", ""))
        event_id, outputs = host.peer.publish(attributes, payload, time.time())
        host.carry_out(outputs)
        await self.wait_for(lambda: event_id in self.settled)
        return {"event": format_event_id(event_id), "accepted": self.settled.pop(event_id, False)}

    async def status(self, request: dict[str, Any]) -> dict[str, Any]:
        host = self.get_host()
        peer = host.peer
        return {
            "peer": make_peer_id(peer.seat.contact.public_key),
            "address": peer.seat.contact.address,
            "known": len(peer.seat.table),
            "connected": len(host.get_neighbours()),
            "subscriptions": sorted(map(str, peer.scout.trunks.own)),
            "statements": len(peer.scout.statements),
            "delivered": self.delivered,
            "unaccepted": len(peer.scout.publishing.outgoing),
            "counts": dict(sorted(peer.seat.counts.items())),
            "dropped": host.dropped,
            "limit": {"messages_per_s": MESSAGES_PER_S, "burst": BURST_MESSAGES},
            "neighbours": [
                {
                    "peer": make_peer_id(contact.public_key),
                    "address": contact.address,
                    "messages_left": int(peer.allowance.get_left(contact.public_key, time.time())),
                }
                for contact in host.get_neighbours()
            ],
        }

    async def answer(self, line: bytes) -> dict[str, Any]:
        commands = {
            "subscribe": self.subscribe,
            "unsubscribe": self.unsubscribe,
            "publish": self.publish,
            "status": self.status,
        }
        try:
            request = json.loads(line)
            if request.get("do") not in commands:
                message = f"`{request.get('do')}` is no command of a peer"
                raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="use `proofcast peer`")
            return {"ok": await commands[request["do"]](request)}
        except (ValueError, KeyError, AttributeError) as error:
            return {"error": f"the request cannot be read: {error!r}", "hint": "use `proofcast peer`", "code": 2}
        except ProofcastError as error:
            return {"error": str(error), "hint": error.hint, "code": error.exit_code}

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer each line; after `watch` only events are sent."""
        buffer = b""
        try:
            async with stream:
                async for data in stream:
                    buffer += data
                    while b"\n" in buffer:
                        line, _, buffer = buffer.partition(b"\n")
                        if b'"watch"' in line:
                            await self.watch(stream)
                            return
                        await stream.send_all(json.dumps(await self.answer(line)).encode() + b"\n")
                    if len(buffer) > LINE_BYTES_MAX:
                        return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def watch(self, stream: trio.SocketStream) -> None:
        sent = max(0, self.delivered - len(self.recent))
        while True:
            fresh = list(self.recent)[len(self.recent) - min(len(self.recent), self.delivered - sent) :]
            sent = self.delivered
            for event in fresh:
                await stream.send_all(json.dumps(format_event(event)).encode() + b"\n")
            if sent == self.delivered:
                await self.changed.wait()


def format_event_id(event_id: EventId) -> str:
    return f"{make_peer_id(event_id.publisher)}/{event_id.session}/{event_id.sequence}"


def format_event(event: Event) -> dict[str, Any]:
    return {
        "event": format_event_id(event.id),
        "attributes": str(event.attributes),
        "born_ms": event.born_ms,
        "payload": base64.b64encode(event.payload).decode(),
    }


async def run_peer(options: PeerOptions) -> None:
    """Run until a signal ends it: bootstrap, stored peers and subscriptions first, then commands."""
    service = Service(PeerStore(options.state), Settings(region=options.region, capacity=options.capacity))
    opened = open_host(
        service.store.seed, options.listen, service.make_peer, service.note, options.announce, options.kad_protocol
    )
    async with opened as host, trio.open_nursery() as nursery:
        service.host = host
        await enter_network(host, service.store, options)
        for predicate, since in service.store.load_subscriptions():
            host.carry_out(host.peer.subscribe(parse_predicate(predicate), time.time(), since))
        options.socket_path.unlink(missing_ok=True)
        listener = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        await listener.bind(str(options.socket_path))
        listener.listen()
        nursery.start_soon(trio.serve_listeners, service.serve, [trio.SocketListener(listener)])
        nursery.start_soon(keep_contacts, host, service.store)
        contact = host.peer.seat.contact
        print(json.dumps({"peer": make_peer_id(contact.public_key), "address": contact.address}), flush=True)
        # Of our own: whoever starts a peer in a shell's background has it ignore Ctrl-C's signal otherwise.
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            await anext(signals)
        nursery.cancel_scope.cancel()


async def enter_network(host: Host, store: PeerStore, options: PeerOptions) -> None:
    """By the peers that were named and those known from the last run; a first peer has neither."""
    contacts = store.load_contacts()
    failures: list[ProofcastError] = []
    for address in options.bootstrap:
        try:
            contacts += await host.find_contacts(address, options.kad_protocol)
        except ProofcastError as error:
            failures.append(error)
    if failures and not contacts:
        raise failures[0]
    host.carry_out(host.peer.join(contacts, time.time()))


async def keep_contacts(host: Host, store: PeerStore) -> None:
    """Now and then, and at the end; a peer that found nobody keeps whom it knew before."""
    table = host.peer.seat.table
    try:
        while True:
            await trio.sleep(SAVE_CONTACTS_S)
            if table.contacts:
                store.save_contacts(table.contacts.values())
    finally:
        if table.contacts:
            store.save_contacts(table.contacts.values())


def main() -> int:
    """`python -m proofcast.overlay.io.daemon OPTIONS`, the options as JSON."""
    logging.disable(logging.CRITICAL)  # libp2p logs each failed dial; the peer counts them
    try:
        trio.run(run_peer, PeerOptions.parse(sys.argv[1]))
    except KeyboardInterrupt:
        return 0
    except BaseExceptionGroup as group:
        return report(group)
    except ProofcastError as error:
        return complain(error)
    return 0


def report(group: BaseExceptionGroup[BaseException]) -> int:
    """One sentence where the reason is one of ours; Ctrl-C is no error; anything else is a bug and shown whole."""
    ours, rest = group.split(ProofcastError)
    if rest is not None and rest.split(KeyboardInterrupt)[1] is not None:
        raise group
    errors = list(iterate_leaves(ours)) if ours is not None else []
    return complain(errors[0]) if errors else 0


def iterate_leaves(group: BaseExceptionGroup[ProofcastError]) -> list[ProofcastError]:
    found: list[ProofcastError] = []
    for error in group.exceptions:
        found += iterate_leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def complain(error: ProofcastError) -> int:
    sys.stderr.write(f"error: {error}\nhint: {error.hint}\n")
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

"""The commands of a running peer, and the local socket by which they reach it.

The socket speaks JSON, one object per line. A request is `{"do": "subscribe", ...}`; the answer has `"ok"`, or
`"error"` with `"hint"` and `"code"`. After `watch` every delivered event follows as a line of its own.

A subscription made with `"keep": true` has an inbox on disk: its events wait there until `take` says that those up to a
number are dealt with. What others are sent is in memory alone, and gone when the peer ends.
"""

import base64
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio

from proofcast.errors import InvalidRequest, ProofcastError, Reason
from proofcast.overlay.allowance import BURST_MESSAGES, MESSAGES_PER_S
from proofcast.overlay.identity import Contact, Ed25519Signer, verify_ed25519
from proofcast.overlay.io.addresses import make_peer_id
from proofcast.overlay.io.host import Host
from proofcast.overlay.io.store import PeerStore, draw_entropy, make_session
from proofcast.overlay.outputs import Abandon, Active, Deliver, Output, Settle, Store
from proofcast.overlay.peer import Peer
from proofcast.overlay.records import Event, EventId
from proofcast.overlay.seen import Mark
from proofcast.overlay.settings import Settings
from proofcast.routing.attributes import parse_attributes
from proofcast.routing.predicate import Predicate, matches, parse_predicate

LINE_BYTES_MAX = 1 << 20
TAKEN_MAX = 16
"""Kept events in one answer: each may have a quarter of a megabyte."""
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
    kept: dict[str, Predicate] = field(default_factory=dict)
    """Subscriptions whose events are kept until somebody takes them."""
    lost: int = 0
    """Events that found the inbox of such a subscription full."""
    _mark: Mark | None = None
    """Of the event that comes next, stored together with it."""

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
                self._mark = mark
            case Deliver(event):
                self._keep(event)
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

    def _keep(self, event: Event) -> None:
        assert self._mark is not None, "a `Store` stands before each `Deliver`"
        kept_for = [text for text, predicate in self.kept.items() if matches(predicate, event.attributes)]
        self.lost += self.store.save_delivery(self._mark, event, kept_for)

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
        if request.get("keep"):
            self.store.save_kept(str(predicate))
            self.kept[str(predicate)] = predicate
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
        self.kept.pop(str(predicate), None)
        return {"predicate": str(predicate)}

    async def take(self, request: dict[str, Any]) -> dict[str, Any]:
        """The oldest kept events of a subscription, after those up to `taken` are forgotten; waits where none is."""
        predicate = str(parse_predicate(str(request["predicate"])))
        self.store.empty_inbox(predicate, int(request.get("taken") or 0))
        await self.wait_for(lambda: self.store.count_inbox(predicate) > 0)
        found = self.store.read_inbox(predicate, TAKEN_MAX)
        return {"events": [format_event(event) | {"number": number} for number, event in found]}

    async def publish(self, request: dict[str, Any]) -> dict[str, Any]:
        attributes = parse_attributes(str(request["attributes"]))
        host = self.get_host()
        payload = base64.b64decode(request.get("payload", ""))
        place = request.get("place")
        if place is None:
            event_id, outputs = host.peer.publish(attributes, payload, time.time())
        else:
            chosen = int(place["session"]), int(place["sequence"]), int(place["born_ms"])
            event_id, outputs = host.peer.publish_at(*chosen, attributes, payload, time.time())
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
            "kept": {predicate: self.store.count_inbox(predicate) for predicate in sorted(self.kept)},
            "lost": self.lost,
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
            "take": self.take,
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
        "publisher": event.id.publisher.hex(),
        "attributes": str(event.attributes),
        "born_ms": event.born_ms,
        "payload": base64.b64encode(event.payload).decode(),
        "signature": base64.b64encode(event.signature).decode(),
    }

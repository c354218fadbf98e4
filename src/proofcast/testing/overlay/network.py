"""Simulated peers: the real protocol code, driven by a queue of messages and timers instead of sockets and clocks.

The same seed and the same calls give the same trace, whatever the hash seed of the interpreter. A message
to a crashed peer comes back as undeliverable after a round trip, one across a partition after `SILENCE_S`; a lost one
does not come back at all.
"""

import heapq
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from proofcast.overlay.codec import encode_frame
from proofcast.overlay.identity import KEY_BITS, Contact, Ed25519Signer, Signer, Verify, make_contact, verify_ed25519
from proofcast.overlay.messages import Message, Notify, Publish, Relay
from proofcast.overlay.outputs import Active, Admit, Deliver, Output, Send, Store
from proofcast.overlay.peer import Peer
from proofcast.overlay.records import EventId
from proofcast.overlay.seen import Mark
from proofcast.overlay.settings import Settings
from proofcast.routing.attributes import EventAttributes, parse_attributes
from proofcast.routing.predicate import Predicate, parse_predicate
from proofcast.testing.overlay.links import SILENCE_S, Link, Wires
from proofcast.testing.overlay.oracle import Delivery, Oracle, Publication, Subscription
from proofcast.testing.overlay.signing import HashSigner, verify_hash

START_S = 1_000_000.0
"""Simulated clocks begin late enough that a recall can reach back before the start."""


@dataclass(slots=True)
class Node:
    """A place in the network: the identity stays, the peer is made anew at every start."""

    index: int
    signer: Signer
    contact: Contact
    settings: Settings
    peer: Peer
    is_up: bool = True
    side: int = 0
    """Peers of different sides of a partition cannot reach each other."""
    wakes_at: float = float("inf")
    marks: dict[tuple[bytes, int], Mark] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    """What the peer told its user besides deliveries."""
    sent: int = 0
    sent_bytes: int = 0
    received: int = 0


Arrival = tuple[float, int, int, int, Message | None]
"""(time, order, target, source, message). Without a message the target's timer; from a source of `-1 - i` the message
that the target could not deliver to peer `i`."""


class Network:
    def __init__(
        self,
        seed: int,
        link: Link | None = None,
        settings: Settings | None = None,
        *,
        make_signer: Callable[[bytes], Signer] = HashSigner,
        verify: Verify = verify_hash,
    ) -> None:
        self.dice = random.Random(seed)
        self.now = START_S
        self.settings = settings or Settings()
        self.wires = Wires(link or Link(), random.Random(seed + 1))
        self.nodes: list[Node] = []
        self.oracle = Oracle()
        self.hops: dict[tuple[EventId, int], int] = {}
        """Hops of an event to a peer, on the way by which it came first."""
        self.messages = 0
        self.event_arrivals = 0
        self.trace = sha256()
        self.on_message: Callable[[int, int, Message], Message | None] = lambda source, target, message: message
        """May change or swallow a message on its way: how a test makes a liar."""
        self._make_signer = make_signer
        self._verify = verify
        self._queue: list[Arrival] = []
        self._order = 0
        self._index_of: dict[bytes, int] = {}

    # --- building

    def add_peer(self, settings: Settings | None = None) -> Node:
        """A new peer that knows nobody."""
        index = len(self.nodes)
        signer = self._make_signer(self.dice.randbytes(32))
        contact = make_contact(signer, f"/memory/{index}")
        chosen = settings or self.settings
        node = Node(index, signer, contact, chosen, self._make_peer(contact, signer, chosen, ()))
        self.nodes.append(node)
        self._index_of[contact.public_key] = index
        self._schedule(node)
        return node

    def _make_peer(self, contact: Contact, signer: Signer, settings: Settings, marks: tuple[Mark, ...]) -> Peer:
        session, entropy = int(self.now * 1000), self.dice.getrandbits(256)
        return Peer(
            contact, signer, self._verify, settings, session=session, entropy=entropy, now=self.now, marks=marks
        )

    def settle(self) -> None:
        """Give every peer the table that it would have after a long time together, and the age for it."""
        ordered = sorted(self.nodes, key=lambda node: node.contact.position)
        positions = [node.contact.position for node in ordered]
        for node in self.nodes:
            node.peer.seat.joined = self.now - 10 * node.settings.refresh_s
            for contact in self._draw_table(node, ordered, positions):
                node.peer.seat.table.add(contact)

    def _draw_table(self, node: Node, ordered: list[Node], positions: list[int]) -> Iterator[Contact]:
        size = node.settings.bucket_contacts
        for bits in range(KEY_BITS, 0, -1):
            first = (node.contact.position >> bits - 1 ^ 1) << bits - 1
            low, high = bisect_left(positions, first), bisect_left(positions, first + (1 << bits - 1))
            places = range(low, high) if high - low <= size else self.dice.sample(range(low, high), size)
            yield from (ordered[place].contact for place in places)
            own = node.contact.position >> bits - 1 << bits - 1
            if bisect_left(positions, own + (1 << bits - 1)) - bisect_left(positions, own) <= 1:
                return

    # --- what users do

    def subscribe(self, index: int, predicate: Predicate | str, since: float | None = None) -> Subscription:
        wanted = parse_predicate(predicate) if isinstance(predicate, str) else predicate
        subscription = Subscription(index, wanted, self.now)
        self.oracle.add(subscription)
        node = self.nodes[index]
        self.carry_out(node, node.peer.subscribe(wanted, self.now, since))
        return subscription

    def unsubscribe(self, index: int, predicate: Predicate | str) -> None:
        wanted = parse_predicate(predicate) if isinstance(predicate, str) else predicate
        self.oracle.end(index, wanted, self.now)
        node = self.nodes[index]
        self.carry_out(node, node.peer.unsubscribe(wanted, self.now))

    def publish(self, index: int, attributes: EventAttributes | str, payload: bytes = b"") -> EventId:
        content = parse_attributes(attributes) if isinstance(attributes, str) else attributes
        node = self.nodes[index]
        event_id, outputs = node.peer.publish(content, payload, self.now)
        return self._publish(node, event_id, content, outputs)

    def publish_to_groups(self, index: int, attributes: EventAttributes | str, payload: bytes = b"") -> EventId:
        content = parse_attributes(attributes) if isinstance(attributes, str) else attributes
        node = self.nodes[index]
        event_id, outputs = node.peer.publish_to_groups(content, payload, self.now)
        return self._publish(node, event_id, content, outputs)

    def _publish(self, node: Node, event_id: EventId, content: EventAttributes, outputs: list[Output]) -> EventId:
        self.oracle.publications[event_id] = Publication(event_id, self.now, content, node.index)
        self.carry_out(node, outputs)
        return event_id

    def open_group(self, index: int, predicate: str) -> None:
        node = self.nodes[index]
        self.carry_out(node, node.peer.open_group(parse_predicate(predicate), self.now))

    def join_group(self, index: int, publisher: int, group: Predicate | str, predicate: Predicate | str) -> None:
        name = parse_predicate(group) if isinstance(group, str) else group
        wanted = parse_predicate(predicate) if isinstance(predicate, str) else predicate
        self.oracle.add(Subscription(index, wanted, self.now))
        node = self.nodes[index]
        self.carry_out(node, node.peer.join_group(self.nodes[publisher].contact, name, wanted, self.now))

    # --- what befalls them

    def crash(self, index: int) -> None:
        self.nodes[index].is_up = False
        self.oracle.unaccepted.update(self.nodes[index].peer.scout.publishing.outgoing)

    def restart(self, index: int) -> None:
        """The same identity with what it had stored; its user subscribes again."""
        node = self.nodes[index]
        node.peer = self._make_peer(node.contact, node.signer, node.settings, tuple(node.marks.values()))
        self.join(index)
        node.is_up, node.wakes_at = True, float("inf")
        for subscription in self.oracle.subscriptions:
            if subscription.peer == index and subscription.ended is None:
                self.carry_out(node, node.peer.subscribe(subscription.predicate, self.now, subscription.asked))

    def join(self, index: int) -> None:
        """Enter the network through the first peer that is there."""
        node, entrance = self.nodes[index], min(self.get_present() - {index})
        self.carry_out(node, node.peer.join([self.nodes[entrance].contact], self.now))

    def split(self, *sides: list[int]) -> None:
        for number, side in enumerate(sides):
            for index in side:
                self.nodes[index].side = number

    def heal(self) -> None:
        for node in self.nodes:
            node.side = 0

    def get_present(self) -> set[int]:
        return {node.index for node in self.nodes if node.is_up}

    # --- time

    def run(self, seconds: float) -> None:
        """Let everything happen that is due."""
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end:
            self._step(heapq.heappop(self._queue))
        self.now = end

    def _step(self, arrival: Arrival) -> None:
        self.now, _, target, source, message = arrival
        node = self.nodes[target]
        if message is None:
            if node.is_up and self.now >= node.wakes_at:
                node.wakes_at = float("inf")
                self.carry_out(node, node.peer.tick(self.now))
        elif source < 0:
            if node.is_up:
                self.carry_out(node, node.peer.undeliverable(self.nodes[-1 - source].contact, message, self.now))
        else:
            self._arrive(node, source, message)

    def _arrive(self, node: Node, source: int, message: Message) -> None:
        sender = self.nodes[source]
        if node.side != sender.side:
            self._push(self.now + SILENCE_S, source, -1 - node.index, message)
        elif not node.is_up:
            self._push(self.now + self.wires.link.delay_s, source, -1 - node.index, message)
        else:
            self.messages += 1
            self.event_arrivals += isinstance(message, Publish | Notify | Relay)
            node.received += 1
            self.carry_out(node, node.peer.receive(sender.contact, message, self.now))

    def carry_out(self, node: Node, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Send):
                self._send(node, self._index_of[output.to.public_key], output.message)
            elif isinstance(output, Deliver):
                self.oracle.deliveries.append(Delivery(node.index, output.event.id, self.now))
                self.trace.update(f"{self.now:.6f} {node.index} {output.event.id}".encode())
            elif isinstance(output, Store):
                node.marks[output.mark.publisher, output.mark.session] = output.mark
            else:
                if isinstance(output, Active) or (isinstance(output, Admit) and output.is_admitted):
                    self.oracle.activate(node.index, output.predicate, self.now)
                node.outputs.append(output)
        self._schedule(node)

    def _send(self, node: Node, target: int, message: Message) -> None:
        altered = self.on_message(node.index, target, message)
        if altered is None or self.wires.is_lost():
            return
        node.sent += 1
        size = 0
        if self.wires.link.bits_per_s is not None:
            size = len(encode_frame(altered))
            node.sent_bytes += size
        if isinstance(altered, Publish | Notify | Relay):
            event_id = altered.event.id
            self.hops.setdefault((event_id, target), self.hops.get((event_id, node.index), 0) + 1)
        is_far = node.settings.region != self.nodes[target].settings.region
        self._push(
            self.wires.compute_arrival(self.now, node.index, target, is_far=is_far, size=size),
            target,
            node.index,
            altered,
        )

    def _push(self, when: float, target: int, source: int, message: Message | None) -> None:
        self._order += 1
        heapq.heappush(self._queue, (when, self._order, target, source, message))

    def _schedule(self, node: Node) -> None:
        deadline = node.peer.deadline()
        if deadline is not None and deadline < node.wakes_at:
            node.wakes_at = deadline
            self._push(max(deadline, self.now), node.index, 0, None)


def make_network(peers: int, seed: int, link: Link | None = None, settings: Settings | None = None) -> Network:
    """A settled network of equal peers."""
    network = Network(seed, link, settings)
    for _ in range(peers):
        network.add_peer()
    network.settle()
    return network


def make_hostile_network(peers: int, seed: int, settings: Settings | None = None) -> Network:
    """The same with real signatures, for tests in which somebody tries to forge them."""
    network = Network(seed, None, settings, make_signer=Ed25519Signer, verify=verify_ed25519)
    for _ in range(peers):
        network.add_peer()
    network.settle()
    return network

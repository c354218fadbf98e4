"""A group server in memory that is honest, or lies once to one victim, and signs whatever comes out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from nacl.signing import SigningKey

from proofcast.groups import outputs
from proofcast.groups.attestation import GENESIS, Attestation, EpochClose, LeafId, build_tree, close_epoch
from proofcast.groups.identity import KeyBundle
from proofcast.groups.packet import InboxPacket, ReceiptPacket
from proofcast.groups.proof import INDEX_BITS, Checkpoint, Kind
from proofcast.groups.series import Message, Series, parse_series
from proofcast.testing.groups.lies import FALSIFIERS, Occasion, Placed, ServerLie, View

Rows = dict[LeafId, list[tuple[int, bytes]]]


def make_rows(sent: dict[bytes, View], received: dict[bytes, View]) -> Rows:
    rows: Rows = {}
    for client, view in sent.items():
        rows[Kind.SENT, client] = [(one.sequence, one.make_sent_row().compute_hash()) for one in view]
    for client, view in received.items():
        deliveries = (one.make_delivery(client) for one in view)
        rows[Kind.RECEIVED, client] = [(one.sequence, one.make_row(client).compute_hash()) for one in deliveries]
    return rows


@dataclass(slots=True)
class LyingServer:
    """Honest while `lie` is None; else it lies once to `victim`, as soon as there is occasion."""

    key: SigningKey
    random: Random
    lie: ServerLie | None = None
    victim: bytes | None = None
    has_lied: bool = False
    epoch: int = 0
    queue: list[Series] = field(default_factory=list)
    counters: dict[bytes, int] = field(default_factory=dict)
    inboxes: dict[bytes, list[InboxPacket | ReceiptPacket]] = field(default_factory=dict)
    keys: dict[bytes, list[KeyBundle]] = field(default_factory=dict)
    fallbacks: dict[bytes, KeyBundle] = field(default_factory=dict)
    deleted: dict[bytes, int] = field(default_factory=dict)
    demands: set[bytes] = field(default_factory=set)
    ends: dict[LeafId, int] = field(default_factory=dict)
    previous: bytes = GENESIS
    history: dict[bytes, list[InboxPacket | ReceiptPacket]] = field(default_factory=dict)
    """Every packet ever, for liars to choose from."""
    variants: dict[bytes, Message] = field(default_factory=dict)
    forked: Checkpoint | None = None
    """The last one of the victim's own chain."""
    log: View = field(default_factory=list)

    @property
    def server_key(self) -> bytes:
        return bytes(self.key.verify_key)

    # --- doors

    def submit(self, data: bytes) -> None:
        series = parse_series(data)
        if series.counter == self.counters.get(series.sender, 0) + 1:
            self.counters[series.sender] = series.counter
            self.queue.append(series)

    def publish(self, bundles: Sequence[KeyBundle]) -> None:
        for bundle in bundles:
            if bundle.is_fallback:
                self.fallbacks[bundle.device] = bundle
            elif self.keys.get(bundle.device) and self.keys[bundle.device][0].curve_key != bundle.curve_key:
                self.keys[bundle.device] = [bundle]
            else:
                self.keys.setdefault(bundle.device, []).append(bundle)

    def claim(self, devices: Sequence[bytes]) -> outputs.Bundles:
        return outputs.Bundles(tuple(filter(None, map(self.claim_one, devices))))

    def claim_one(self, device: bytes) -> KeyBundle | None:
        return self.keys[device].pop(0) if self.keys.get(device) else self.fallbacks.get(device)

    def delete(self, client: bytes, sequence: int) -> None:
        self.deleted[client] = max(sequence, self.deleted.get(client, 0))
        inbox = self.inboxes.get(client, [])
        self.inboxes[client] = [packet for packet in inbox if packet.attestation.leaf.next > sequence]

    # --- an epoch

    def close(self) -> None:
        """Place what was submitted, attest it, fill the inboxes."""
        self.epoch += 1
        placed, receipts = self.place()
        self.log += placed
        sent, received = self.make_views(placed)
        received = self.falsify(received)
        rows = self.falsify_rows(make_rows(sent, received))
        closed = close_epoch(self.server_key, b"secret", self.epoch, len(placed), self.previous, rows, self.get_prev)
        for (kind, client), attestation in self.attest(closed):
            if kind == Kind.SENT:
                self.fill(client, ReceiptPacket(attestation, tuple(receipts.get(client, ()))))
            else:
                deliveries = tuple(one.make_delivery(client) for one in received[client])
                self.fill(client, self.falsify_packet(client, InboxPacket(attestation, deliveries)))
        self.previous, self.demands = closed.checkpoint.compute_digest(), set()

    def place(self) -> tuple[View, dict[bytes, list[tuple[int, int]]]]:
        """The messages at their places, and for each sender the places of its series."""
        placed: View = []
        receipts: dict[bytes, list[tuple[int, int]]] = {}
        for series in self.queue:
            first, count = (self.epoch << INDEX_BITS) + len(placed), len(series.messages)
            receipts.setdefault(series.sender, []).append((series.counter, first))
            placed += [Placed(first + at, series.digest, at, count, one) for at, one in enumerate(series.messages)]
        self.queue = []
        return placed, receipts

    def make_views(self, placed: View) -> tuple[dict[bytes, View], dict[bytes, View]]:
        sent: dict[bytes, View] = {client: [] for client in self.demands}
        received: dict[bytes, View] = {client: [] for client in self.demands}
        for one in placed:
            sent.setdefault(one.message.sender, []).append(one)
            for recipient in one.message.recipients:
                received.setdefault(recipient, []).append(one)
        return sent, received

    def attest(self, closed: EpochClose) -> Iterator[tuple[LeafId, Attestation]]:
        signature = self.key.sign(closed.checkpoint.get_signed_bytes()).signature
        for leaf_id, leaf in sorted(closed.leaves.items()):
            self.ends[leaf_id] = leaf.next
            if self.is_forked(leaf_id):
                yield leaf_id, self.attest_fork(closed, leaf_id)
            else:
                yield leaf_id, closed.make_attestation(leaf_id, signature)

    def fill(self, client: bytes, packet: InboxPacket | ReceiptPacket) -> None:
        self.inboxes.setdefault(client, []).append(packet)
        self.history.setdefault(client, []).append(packet)

    # --- lies

    def is_about_victim(self, leaf_id: LeafId, lie: ServerLie) -> bool:
        return self.lie is lie and leaf_id == (Kind.RECEIVED, self.victim)

    def falsify(self, received: dict[bytes, View]) -> dict[bytes, View]:
        """The views, the victim's after the lie."""
        if self.lie is None or self.victim is None or self.has_lied or self.lie not in FALSIFIERS:
            return received
        occasion = Occasion(self.random, self.victim, self.epoch, self.log, self.variants)
        view = FALSIFIERS[self.lie](received.get(self.victim, []), occasion)
        if view is None:
            return received
        self.has_lied = True
        return received | {self.victim: view}

    def get_prev(self, leaf_id: LeafId) -> int:
        end = self.ends.get(leaf_id, 0)
        if self.is_about_victim(leaf_id, ServerLie.OVERLAP) and end and not self.has_lied:
            self.has_lied = True
            return end - (1 << INDEX_BITS)
        return end

    def falsify_rows(self, rows: Rows) -> Rows:
        leaf_id = Kind.RECEIVED, self.victim or b""
        if self.lie is ServerLie.OTHER_ROWS and rows.get(leaf_id) and not self.has_lied:
            self.has_lied = True
            return rows | {leaf_id: [(sequence, bytes(32)) for sequence, _ in rows[leaf_id]]}
        return rows

    def is_forked(self, leaf_id: LeafId) -> bool:
        is_forked = self.lie is ServerLie.FORK and self.has_lied and leaf_id[1] == self.victim
        return is_forked or self.is_about_victim(leaf_id, ServerLie.TWO_CHECKPOINTS)

    def attest_fork(self, closed: EpochClose, leaf_id: LeafId) -> Attestation:
        """The victim lives under a chain of its own, in which it is alone."""
        own = {key: leaf for key, leaf in closed.leaves.items() if key[1] == leaf_id[1]}
        tree = build_tree(own.values(), closed.checkpoint)
        if self.forked is None or self.forked.epoch < self.epoch:
            previous = self.forked.compute_digest() if self.forked else closed.checkpoint.previous
            self.forked = replace(closed.checkpoint, previous=previous, root=tree.root)
        self.has_lied = True
        signature = self.key.sign(self.forked.get_signed_bytes()).signature
        leaf = own[leaf_id]
        return Attestation(self.forked, signature, leaf, tree.get_path(leaf.compute_position()))

    def falsify_packet(self, client: bytes, packet: InboxPacket) -> InboxPacket:
        old = next((one for one in self.history.get(client, []) if isinstance(one, InboxPacket)), None)
        if self.has_lied or client != self.victim:
            return packet
        if self.lie is ServerLie.STALE_ATTESTATION and old:
            self.has_lied = True
            return replace(packet, attestation=old.attestation)
        if self.lie is ServerLie.BAD_SIGNATURE:
            self.has_lied = True
            return replace(packet, attestation=replace(packet.attestation, signature=bytes(64)))
        return packet

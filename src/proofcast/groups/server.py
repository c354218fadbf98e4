"""A shard of the server: which requests of its clients it accepts, and what the log then means for them.

    accept   a request, checked -> an entry for the sequencer        nothing changes yet but the counter a client is at
    frame    a durable frame    -> answers to what was asked in it   keys and deletions take effect
    close    its signed epoch   -> packets for inboxes               messages are delivered, and never before

A client belongs to the shard that the digest of its key names. Every shard sees every frame and takes what is its own;
keys are known to all, since anybody may claim anybody's. All state follows from frames and closes, so a shard that
reads the log again, or one of several that share it anew, is as it was, bit by bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from struct import Struct

from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.groups.admission import Limiter, Rate
from proofcast.groups.attestor import CloseRecord, ShardClose
from proofcast.groups.epoch import RECEIPT, get_shard
from proofcast.groups.frame import Entry, EntryKind, encode_entry, iterate_places, parse_entries
from proofcast.groups.identity import BUNDLE_BYTES, parse_bundle
from proofcast.groups.inbox import ONE_TIME_KEYS_MAX, Directory, Inbox, Packet, split_bundles
from proofcast.groups.kernel import Contents, check_series, collect_contents
from proofcast.groups.proof import INDEX_BITS, Kind
from proofcast.groups.series import VERSION
from proofcast.groups.wire import refuse

SEQUENCE = Struct(">Q")
COUNT = Struct(">I")
COUNTER_AT = 33
"""Of a series: after version and sender."""
BYTES_RATE = Rate(per_s=64 << 20, burst=256 << 20)
"""What one device may send: a hundred times what a person does, a fraction of what the disk takes."""
DEVICES_MAX = 1_000_000
"""Registering is free, memory is not: about ten gigabytes with full shelves."""
CLAIMS_RATE = Rate(per_s=10, burst=1_000)
"""One-time keys a device may take, lest one empties another's shelf: a large group at once, then few."""


@dataclass(slots=True)
class Client:
    inbox: Inbox = field(default_factory=Inbox)
    accepted: int = 0
    """Counter of the last series accepted."""
    attested: int = 0
    """Counter of the last series whose epoch is signed."""
    last_series: bytes = b""
    """Its bytes, to know them again."""

    def note_series(self, series: bytes) -> None:
        """Learn from the log what was accepted, before a restart perhaps."""
        counter = int.from_bytes(series[COUNTER_AT : COUNTER_AT + 8], "big")
        if counter > self.accepted:
            self.accepted, self.last_series = counter, series


@dataclass(frozen=True, slots=True)
class Answer:
    """To one entry of one of our clients, in the order in which they were accepted; series are answered by receipts."""

    entry: Entry
    body: bytes | None
    """CLAIM: the key bundle, None where there is no such device or it has no keys; else empty."""


@dataclass(frozen=True, slots=True)
class Delivered:
    kind: Kind
    client: bytes
    packet: Packet


@dataclass(slots=True)
class Shard:
    number: int
    shards: int
    clients: dict[bytes, Client] = field(default_factory=dict)
    directory: Directory = field(default_factory=Directory)
    frames: dict[int, bytes] = field(default_factory=dict)
    """Durable, not closed yet."""
    full: set[bytes] = field(default_factory=set)
    """Devices, of any shard, whose inbox takes no more."""
    full_changes: list[tuple[bytes, bool]] = field(default_factory=list)
    """Of our own devices, for the driver to tell the other shards."""
    bytes_limit: Limiter = field(default_factory=lambda: Limiter(BYTES_RATE, "bytes"))
    claims_limit: Limiter = field(default_factory=lambda: Limiter(CLAIMS_RATE, "one-time keys"))

    def is_ours(self, client: bytes) -> bool:
        return self.shards == 1 or get_shard(client, self.shards) == self.number

    def get_client(self, device: bytes) -> Client:
        client = self.clients.get(device)
        if client is None:
            client = self.clients[device] = Client()
        return client

    def look_up(self, device: bytes) -> Client:
        """For reading: a stranger who asks leaves no trace, and one of another shard is sent there."""
        if not self.is_ours(device):
            raise refuse_shard(device, get_shard(device, self.shards))
        return self.clients.get(device) or Client()

    # --- accept

    def accept(self, kind: EntryKind, device: bytes, body: bytes, now: float) -> bytes:
        """The entry of a request, or a refusal; `device` has proved who it is."""
        if not self.is_ours(device):
            raise refuse_shard(device, get_shard(device, self.shards))
        if kind != EntryKind.KEYS and device not in self.directory:
            message = f"the device `{device.hex()}` is not registered"
            raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="publish its one-time keys first")
        self.bytes_limit.take(device, len(body), now)
        ACCEPT[kind](self, device, body, now)
        return encode_entry(kind, device, body)

    def accept_series(self, device: bytes, body: bytes, now: float) -> None:
        series, client = check_series(body), self.get_client(device)
        if series.sender != device:
            message = f"the series names the sender `{series.sender.hex()}`, its device is `{device.hex()}`"
            raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="send with the device's own login")
        if series.counter != client.accepted + 1:
            message = f"the series has counter `{series.counter}` where `{client.accepted + 1}` is next"
            hint = "read the inbox first; a device restored from a backup begins a new generation"
            raise InvalidRequest(
                Reason.STALE_SEQUENCE, message, hint=hint, have=series.counter, need=client.accepted + 1
            )
        self.verify_recipients(series.recipients)
        client.accepted, client.last_series = series.counter, body

    def is_repeated(self, device: bytes, body: bytes) -> bool:
        """Whether these are the very bytes of the device's last series, whose receipt it may have missed."""
        return self.get_client(device).last_series == body

    def verify_recipients(self, recipients: Sequence[bytes]) -> None:
        for recipient in recipients:
            if recipient not in self.directory:
                message = f"the recipient `{recipient.hex()}` is not registered here"
                raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="ask its owner to connect it to this server")
            if recipient in self.full:
                message = f"the inbox of `{recipient.hex()}` is full"
                raise Unavailable(Reason.NOT_YET, message, hint="its owner must read; or remove it from the group")

    def accept_keys(self, device: bytes, body: bytes, now: float) -> None:
        if not body or len(body) % BUNDLE_BYTES or len(body) > (ONE_TIME_KEYS_MAX + 1) * BUNDLE_BYTES:
            raise refuse(f"`{len(body)}` bytes are no list of up to `{ONE_TIME_KEYS_MAX}` key bundles")
        if device not in self.directory and len(self.directory.shelves) >= DEVICES_MAX:
            message = f"this server has `{DEVICES_MAX}` devices and takes no more"
            raise Unavailable(Reason.NOT_YET, message, hint="use another server")
        for data in split_bundles(body):
            bundle = parse_bundle(data)
            if bundle.device != device:
                raise refuse(f"a key bundle names the device `{bundle.device.hex()}`, not `{device.hex()}`")
            bundle.verify(device)

    def accept_claim(self, device: bytes, body: bytes, now: float) -> None:
        if body not in self.directory:
            message = f"the device `{body.hex()}` is not registered here"
            raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="ask its owner to connect it to this server")
        self.claims_limit.take(device, 1, now)

    def accept_delete(self, device: bytes, body: bytes, now: float) -> None:
        if len(body) != SEQUENCE.size:
            raise refuse(f"`{len(body)}` bytes are no sequence")

    def accept_demand(self, device: bytes, body: bytes, now: float) -> None:
        if body:
            raise refuse(f"a demand has `{len(body)}` bytes where none are due")

    # --- the log

    def apply_frame(self, epoch: int, body: bytes) -> list[Answer]:
        """Take what a durable frame holds; its messages wait for the epoch to be signed."""
        self.frames[epoch] = body
        answers = [self.apply_entry(epoch, entry) for entry in parse_entries(body, skip=EntryKind.SERIES)]
        return [answer for answer in answers if self.is_ours(answer.entry.client)]

    def replay_frame(self, epoch: int, body: bytes) -> None:
        """Take a frame from the log of an earlier life: also which series were accepted."""
        last: dict[bytes, tuple[int, int]] = {}
        for kind, client, begin, end in iterate_places(body):
            if kind == EntryKind.SERIES:
                last[client] = begin, end
            else:
                self.apply_entry(epoch, Entry(EntryKind(kind), client, body[begin:end]))
        for client, (begin, end) in last.items():
            if self.is_ours(client):
                self.get_client(client).note_series(body[begin:end])

    def apply_entry(self, epoch: int, entry: Entry) -> Answer:
        body: bytes | None = b""
        if entry.kind == EntryKind.KEYS:
            self.directory.publish(entry.client, entry.body)
        elif entry.kind == EntryKind.CLAIM:
            body = self.directory.claim(entry.body)
        elif entry.kind == EntryKind.DELETE and self.is_ours(entry.client):
            self.apply_delete(epoch, entry)
        return Answer(entry, body)

    def apply_delete(self, epoch: int, entry: Entry) -> None:
        """Up to the frames before this one: nobody deletes what is still to come."""
        (before,) = SEQUENCE.unpack(entry.body)
        self.get_client(entry.client).inbox.delete(min(before, epoch << INDEX_BITS))
        self.update_full(entry.client)

    def apply_close(self, epoch: int, close: ShardClose) -> list[Delivered]:
        """Put the packets of a signed epoch into the inboxes."""
        body, end = self.frames.pop(epoch), epoch + 1 << INDEX_BITS
        contents = {one.leaf_id: one for one in collect_contents(epoch, body, close.digests, self.number, self.shards)}
        delivered = []
        for (kind, device), attestation in close.attestations:
            packet = Packet(end, encode_packet(kind, attestation, contents.get((kind, device))))
            client = self.get_client(device)
            client.inbox.add(packet)
            if kind is Kind.SENT:
                client.attested = max(client.attested, get_last_counter(contents.get((kind, device))))
            self.update_full(device)
            delivered.append(Delivered(kind, device, packet))
        return delivered

    def is_needed(self, record: CloseRecord) -> bool:
        """Whether an epoch, met again in the log, has packets that somebody has not deleted."""
        ours = (leaf for leaf in record.leaves if self.is_ours(leaf.client))
        return any(self.get_client(leaf.client).inbox.deleted < leaf.next for leaf in ours)

    def update_full(self, device: bytes) -> None:
        is_full = self.get_client(device).inbox.is_full
        if is_full != (device in self.full):
            self.note_full(device, is_full)
            self.full_changes.append((device, is_full))

    def note_full(self, device: bytes, is_full: bool) -> None:
        (self.full.add if is_full else self.full.discard)(device)


ACCEPT: dict[EntryKind, Callable[[Shard, bytes, bytes, float], None]] = {
    EntryKind.SERIES: Shard.accept_series,
    EntryKind.DELETE: Shard.accept_delete,
    EntryKind.KEYS: Shard.accept_keys,
    EntryKind.CLAIM: Shard.accept_claim,
    EntryKind.DEMAND: Shard.accept_demand,
}


def encode_packet(kind: Kind, attestation: bytes, contents: Contents | None) -> bytes:
    count, items = (contents.count, contents.items) if contents else (0, b"")
    return b"".join([bytes([VERSION, kind]), attestation, COUNT.pack(count), items])


def get_last_counter(receipts: Contents | None) -> int:
    """Of the series in a receipt packet; 0 where there are none."""
    return RECEIPT.unpack(receipts.items[-RECEIPT.size :])[0] if receipts else 0


def refuse_shard(device: bytes, shard: int) -> InvalidRequest:
    message = f"the device `{device.hex()}` belongs to shard `{shard}`"
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint="ask `/v1/server` for its address", need=shard)

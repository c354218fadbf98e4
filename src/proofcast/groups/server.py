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
from proofcast.groups.attestor import CloseRecord
from proofcast.groups.epoch import get_shard
from proofcast.groups.frame import Entry, EntryKind, encode_entry
from proofcast.groups.identity import BUNDLE_BYTES, parse_bundle
from proofcast.groups.inbox import ONE_TIME_KEYS_MAX, Directory, Inbox, Packet, split_bundles
from proofcast.groups.kernel import check_batch, list_last_series, list_requests, make_packets
from proofcast.groups.notice import Notice
from proofcast.groups.proof import INDEX_BITS, Kind
from proofcast.groups.shard_close import SIGNED_BYTES
from proofcast.groups.wire import refuse

SEQUENCE = Struct(">Q")
LENGTH_BYTES = 4
"""Of a list's item."""
COUNTER_AT = 33
"""Of a series: after version and sender."""
BYTES_RATE = Rate(per_s=64 << 20, burst=256 << 20)
"""What one device may send: a hundred times what a person does, a fraction of what the disk takes."""
DEVICES_MAX = 1_000_000
"""Registering is free, memory is not: about ten gigabytes with full shelves."""
OPEN_KINDS = frozenset({EntryKind.KEYS, EntryKind.COSIGN})
"""For those who are not registered, too."""
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
class Accepted:
    """What goes into the log for a request."""

    entries: bytes
    messages: int = 0


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
    notice: Notice = field(default_factory=Notice)
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

    def accept(self, kind: EntryKind, device: bytes, body: bytes, now: float) -> Accepted:
        """What a request adds to the log, or a refusal; `device` has proved who it is."""
        if not self.is_ours(device):
            raise refuse_shard(device, get_shard(device, self.shards))
        if kind not in OPEN_KINDS and device not in self.directory:
            message = f"the device `{device.hex()}` is not registered"
            raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="publish its one-time keys first")
        self.bytes_limit.take(device, len(body), now)
        if kind == EntryKind.SERIES:
            return self.accept_series(device, body)
        ACCEPT[kind](self, device, body, now)
        return Accepted(encode_entry(kind, device, body))

    def accept_series(self, device: bytes, body: bytes) -> Accepted:
        """All series of a list, or none."""
        batch, client = check_batch(body), self.get_client(device)
        if batch.sender != device:
            message = f"the series names the sender `{batch.sender.hex()}`, its device is `{device.hex()}`"
            raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="send with the device's own login")
        if batch.counter != client.accepted + 1:
            message = f"the series has counter `{batch.counter}` where `{client.accepted + 1}` is next"
            hint = "read the inbox first; a device restored from a backup begins a new generation"
            raise InvalidRequest(
                Reason.STALE_SEQUENCE, message, hint=hint, have=batch.counter, need=client.accepted + 1
            )
        self.verify_recipients(batch.recipients)
        client.accepted, client.last_series = batch.last_counter, body[-batch.last_bytes :]
        return Accepted(batch.entries, batch.messages)

    def is_repeated(self, device: bytes, body: bytes) -> bool:
        """Whether a list is the very bytes of the device's last series, whose receipt it may have missed."""
        last = self.get_client(device).last_series
        return last != b"" and len(body) == LENGTH_BYTES + len(last) and body.endswith(last)

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

    def accept_cosignatures(self, witness: bytes, body: bytes, now: float) -> None:
        self.notice.verify(witness, body)

    def accept_demand(self, device: bytes, body: bytes, now: float) -> None:
        if body:
            raise refuse(f"a demand has `{len(body)}` bytes where none are due")

    # --- the log

    def apply_frame(self, epoch: int, body: bytes) -> list[Answer]:
        """Take what a durable frame holds; its messages wait for the epoch to be signed."""
        self.frames[epoch] = body
        answers = [self.apply_entry(epoch, entry) for entry in list_requests(body)]
        return [answer for answer in answers if self.is_ours(answer.entry.client)]

    def replay_frame(self, epoch: int, body: bytes) -> None:
        """Take a frame from the log of an earlier life: also which series were accepted."""
        for entry in list_requests(body):
            self.apply_entry(epoch, entry)
        for client, series in list_last_series(body):
            if self.is_ours(client):
                self.get_client(client).note_series(series)

    def replay_deletions(self, epoch: int, body: bytes) -> None:
        """Take from a later frame only what makes it unnecessary to deliver again."""
        for entry in list_requests(body):
            if entry.kind == EntryKind.DELETE:
                self.apply_entry(epoch, entry)

    def apply_entry(self, epoch: int, entry: Entry) -> Answer:
        body: bytes | None = b""
        if entry.kind == EntryKind.KEYS:
            self.directory.publish(entry.client, entry.body)
        elif entry.kind == EntryKind.CLAIM:
            body = self.directory.claim(entry.body)
        elif entry.kind == EntryKind.DELETE and self.is_ours(entry.client):
            self.apply_delete(epoch, entry)
        elif entry.kind == EntryKind.COSIGN:
            self.notice.apply(entry.client, entry.body)
        return Answer(entry, body)

    def apply_delete(self, epoch: int, entry: Entry) -> None:
        """Up to the frames before this one: nobody deletes what is still to come."""
        (before,) = SEQUENCE.unpack(entry.body)
        client = self.get_client(entry.client)
        client.inbox.delete(min(before, epoch << INDEX_BITS))
        self.update_full(entry.client, client)

    def apply_close(self, epoch: int, close: bytes) -> list[tuple[Kind, bytes]]:
        """Put the packets of a signed epoch into the inboxes; kind and device of each."""
        body, end = self.frames.pop(epoch), epoch + 1 << INDEX_BITS
        self.notice.add(epoch, close[:SIGNED_BYTES])
        delivered = []
        for kind, device, data, counter in make_packets(epoch, body, close):
            client = self.get_client(device)
            client.inbox.add(Packet(end, data))
            client.attested = max(client.attested, counter)
            self.update_full(device, client)
            delivered.append((kind, device))
        return delivered

    def is_needed(self, record: CloseRecord) -> bool:
        """Whether an epoch, met again in the log, has packets that somebody has not deleted."""
        end = record.checkpoint.epoch + 1 << INDEX_BITS
        ours = (name[1:] for name in record.get_names() if self.is_ours(name[1:]))
        return any(self.get_client(device).inbox.deleted < end for device in ours)

    def update_full(self, device: bytes, client: Client) -> None:
        is_full = client.inbox.is_full
        if is_full != (device in self.full):
            self.note_full(device, is_full)
            self.full_changes.append((device, is_full))

    def note_full(self, device: bytes, is_full: bool) -> None:
        (self.full.add if is_full else self.full.discard)(device)


ACCEPT: dict[EntryKind, Callable[[Shard, bytes, bytes, float], None]] = {
    EntryKind.DELETE: Shard.accept_delete,
    EntryKind.KEYS: Shard.accept_keys,
    EntryKind.CLAIM: Shard.accept_claim,
    EntryKind.DEMAND: Shard.accept_demand,
    EntryKind.COSIGN: Shard.accept_cosignatures,
}


def refuse_shard(device: bytes, shard: int) -> InvalidRequest:
    message = f"the device `{device.hex()}` belongs to shard `{shard}`"
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint="ask `/v1/server` for its address", need=shard)

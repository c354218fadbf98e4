"""The server's state machines without processes: what is refused, what everybody gets, what survives."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.groups import kernel, server
from proofcast.groups.attestor import Attestor, CloseRecord, parse_close_record
from proofcast.groups.epoch import compute_frame_rows, get_shard
from proofcast.groups.frame import EntryKind, encode_entry, parse_entries
from proofcast.groups.identity import KeyBundle
from proofcast.groups.inbox import INBOX_BYTES_MAX, ONE_TIME_KEYS_MAX
from proofcast.groups.io.log import SegmentLog, list_segments, read_log
from proofcast.groups.io.recovery import (
    CLOSES,
    FRAMES,
    compact,
    load_attestor,
    load_snapshot,
    make_shard_close,
    recover_attestor,
    recover_shard,
)
from proofcast.groups.io.serverkey import ServerKey, load_server_key
from proofcast.groups.link import encode_list
from proofcast.groups.packet import InboxPacket, ReceiptPacket, parse_packet
from proofcast.groups.proof import Kind
from proofcast.groups.series import Envelope, Form, Message, Series, make_received_row, parse_series
from proofcast.groups.server import CLAIMS_RATE, Shard
from proofcast.groups.shard_close import encode_shard_closes

KEY = ServerKey(SigningKey(b"s" * 32), b"x" * 32)
DEVICES = [SigningKey(bytes([number]) * 32) for number in range(1, 8)]
IDS = [bytes(device.verify_key) for device in DEVICES]
NOW = 1_000.0


def make_bundle(device: SigningKey, key: int = 0, *, is_fallback: bool = False) -> bytes:
    unsigned = KeyBundle(bytes(device.verify_key), b"c" * 32, is_fallback, key.to_bytes(32, "big"), b"")
    signature = device.sign(unsigned.get_signed_bytes()).signature
    return unsigned.encode() + signature


def make_series(sender: bytes, counter: int, *recipients: Iterable[bytes], seed: int = 0) -> bytes:
    """One message to each list of recipients."""
    dice = random.Random(f"{seed} {sender.hex()} {counter}")
    messages = []
    for listed in recipients:
        everybody = sorted({*listed, sender})
        envelopes = tuple(Envelope(one, Form.NORMAL, dice.randbytes(127)) for one in everybody)
        messages.append(Message(sender, b"\x01" + dice.randbytes(60), envelopes))
    return Series(sender, counter, tuple(messages)).encode()


@dataclass
class World:
    """Shards and an attestor that are told everything at once."""

    shards: int = 1
    parts: list[Shard] = field(init=False)
    attestor: Attestor = field(init=False)
    waiting: list[bytes] = field(default_factory=list)
    epoch: int = 0
    frames: list[bytes] = field(default_factory=list)
    closes: list[CloseRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = [Shard(number, self.shards) for number in range(self.shards)]
        self.attestor = Attestor(KEY.public, KEY.secret)

    def find(self, device: bytes) -> Shard:
        return self.parts[get_shard(device, self.shards)]

    def ask(self, kind: EntryKind, device: bytes, body: bytes) -> None:
        body = encode_list([body]) if kind == EntryKind.SERIES else body
        self.waiting.append(self.find(device).accept(kind, device, body, NOW).entries)

    def register(self, *devices: SigningKey) -> None:
        for device in devices:
            self.ask(EntryKind.KEYS, bytes(device.verify_key), make_bundle(device))
        self.cut()

    def cut(self) -> None:
        """Close a frame with all that waits."""
        self.epoch += 1
        body, self.waiting = b"".join(self.waiting), []
        record = self.attestor.close_frame(self.epoch, body)
        self.attestor.apply_record(record)
        self.frames.append(body)
        self.closes.append(record)
        for shard in self.parts:
            shard.apply_frame(self.epoch, body)
            shard.apply_close(self.epoch, make_shard_close(record, KEY, shard.number, self.shards))

    def read(self, device: bytes) -> list[bytes]:
        return [packet.data for packet in self.find(device).get_client(device).inbox.read(0)]

    def read_all(self) -> dict[bytes, list[bytes]]:
        return {device: self.read(device) for device in IDS}


@pytest.fixture
def world() -> World:
    world = World()
    world.register(*DEVICES[:4])
    return world


# --- refusals


def test_unregistered_device_cannot_send(world: World) -> None:
    with pytest.raises(InvalidRequest, match="not registered"):
        world.ask(EntryKind.SERIES, IDS[6], make_series(IDS[6], 1, [IDS[0]]))


def test_unregistered_recipient_is_refused(world: World) -> None:
    with pytest.raises(InvalidRequest, match="recipient"):
        world.ask(EntryKind.SERIES, IDS[0], make_series(IDS[0], 1, [IDS[6]]))


def test_series_of_another_sender_is_refused(world: World) -> None:
    with pytest.raises(InvalidRequest, match="names the sender"):
        world.ask(EntryKind.SERIES, IDS[0], make_series(IDS[1], 1, [IDS[0]]))


@pytest.mark.parametrize("counter", [0, 2, 7])
def test_counter_that_is_not_next_is_refused(world: World, counter: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        world.ask(EntryKind.SERIES, IDS[0], make_series(IDS[0], counter, [IDS[1]]))
    assert (refused.value.reason, refused.value.need) == (Reason.STALE_SEQUENCE, 1)


def test_refused_series_changes_nothing(world: World) -> None:
    with pytest.raises(InvalidInput):
        world.ask(EntryKind.SERIES, IDS[0], make_series(IDS[0], 1, [IDS[1]])[:-1])
    world.ask(EntryKind.SERIES, IDS[0], make_series(IDS[0], 1, [IDS[1]]))


@pytest.mark.parametrize(
    "keys",
    [b"", b"x" * 160, make_bundle(DEVICES[1]), make_bundle(DEVICES[0])[:-1] + b"\0"],
    ids=["none", "too short", "of another device", "signature"],
)
def test_keys_are_refused(world: World, keys: bytes) -> None:
    with pytest.raises(InvalidInput):
        world.ask(EntryKind.KEYS, IDS[0], keys)


def test_device_of_another_shard_is_sent_there() -> None:
    world = World(shards=4)
    wrong = world.parts[(get_shard(IDS[0], 4) + 1) % 4]
    with pytest.raises(InvalidRequest, match=f"belongs to shard `{get_shard(IDS[0], 4)}`"):
        wrong.accept(EntryKind.KEYS, IDS[0], make_bundle(DEVICES[0]), NOW)


def test_stranger_who_asks_leaves_no_trace(world: World) -> None:
    assert world.parts[0].look_up(IDS[6]).inbox.read(0) == []
    assert IDS[6] not in world.parts[0].clients


def test_full_server_takes_no_further_device(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DEVICES_MAX", 4)
    with pytest.raises(Unavailable, match="takes no more"):
        world.ask(EntryKind.KEYS, IDS[6], make_bundle(DEVICES[6]))
    world.ask(EntryKind.KEYS, IDS[0], make_bundle(DEVICES[0], 1))


def test_device_that_empties_a_shelf_is_slowed(world: World) -> None:
    for _ in range(int(CLAIMS_RATE.burst)):
        world.ask(EntryKind.CLAIM, IDS[0], IDS[1])
    with pytest.raises(Unavailable, match="one-time keys"):
        world.ask(EntryKind.CLAIM, IDS[0], IDS[1])
    world.ask(EntryKind.CLAIM, IDS[2], IDS[1])


def test_full_inbox_is_refused_before_and_not_after(world: World) -> None:
    """What is accepted is delivered; room is asked for first."""
    inbox = world.find(IDS[1]).get_client(IDS[1]).inbox
    inbox.size_bytes = INBOX_BYTES_MAX
    world.ask(EntryKind.SERIES, IDS[0], make_series(IDS[0], 1, [IDS[1]]))
    world.cut()
    assert len(world.read(IDS[1])) == 1
    with pytest.raises(Unavailable, match="is full"):
        world.ask(EntryKind.SERIES, IDS[0], make_series(IDS[0], 2, [IDS[1]]))
    inbox.size_bytes = len(world.read(IDS[1])[0])
    world.ask(EntryKind.DELETE, IDS[1], (2**63).to_bytes(8, "big"))
    world.cut()
    world.ask(EntryKind.SERIES, IDS[0], make_series(IDS[0], 2, [IDS[1]]))


def test_deleting_beyond_the_end_keeps_what_is_still_to_come(world: World) -> None:
    world.ask(EntryKind.DELETE, IDS[1], (2**64 - 1).to_bytes(8, "big"))
    world.ask(EntryKind.SERIES, IDS[0], make_series(IDS[0], 1, [IDS[1]]))
    world.cut()
    assert len(world.read(IDS[1])) == 1


# --- keys


def test_one_time_key_goes_to_one_claimer() -> None:
    world = World()
    world.register(*DEVICES[:3])
    world.ask(EntryKind.KEYS, IDS[0], make_bundle(DEVICES[0], 1) + make_bundle(DEVICES[0], 9, is_fallback=True))
    for _ in range(4):
        world.ask(EntryKind.CLAIM, IDS[1], IDS[0])
    shard = world.parts[0]
    answers = shard.apply_frame(99, b"".join(world.waiting))
    keys = [answer.body[65:97] for answer in answers if answer.entry.kind == EntryKind.CLAIM and answer.body]
    assert [int.from_bytes(key, "big") for key in keys] == [0, 1, 9, 9]


def test_shelf_has_an_end(world: World) -> None:
    bundles = b"".join(make_bundle(DEVICES[0], number) for number in range(ONE_TIME_KEYS_MAX))
    world.ask(EntryKind.KEYS, IDS[0], bundles)
    world.cut()
    assert world.parts[0].directory.count(IDS[0]) == ONE_TIME_KEYS_MAX


# --- order and attestation


def play(world: World, seed: int) -> World:
    """A random conversation; the same for every number of shards."""
    dice = random.Random(seed)
    world.register(*DEVICES)
    counters = dict.fromkeys(IDS, 0)
    for _ in range(30):
        for _ in range(dice.randrange(4)):
            sender = dice.choice(IDS)
            counters[sender] += 1
            lists = [dice.sample(IDS, dice.randrange(1, 5)) for _ in range(dice.randrange(1, 4))]
            world.ask(EntryKind.SERIES, sender, make_series(sender, counters[sender], *lists, seed=seed))
        if dice.random() < 0.2:
            world.ask(EntryKind.DEMAND, dice.choice(IDS), b"")
        world.cut()
    return world


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shards", [2, 4])
def test_shards_give_the_same_order_and_the_same_bytes(shards: int, seed: int) -> None:
    assert play(World(shards=shards), seed).read_all() == play(World(), seed).read_all()


@pytest.mark.parametrize("seed", range(3))
def test_every_packet_holds_and_continues_the_one_before(seed: int) -> None:
    """Contiguous per client and kind, rows as the client makes them itself, series side by side."""
    world = play(World(), seed)
    sent = {entry.digest: entry for entry in iterate_series(world)}
    for device in IDS:
        ends = dict.fromkeys(Kind, 0)
        for data in world.read(device):
            packet = parse_packet(data)
            kind = Kind.RECEIVED if isinstance(packet, InboxPacket) else Kind.SENT
            rows = make_rows(packet, device, sent)
            packet.attestation.verify(KEY.public, (kind, device), ends[kind], rows)
            ends[kind] = packet.attestation.leaf.next


def iterate_series(world: World) -> list[Series]:
    entries = [entry for body in world.frames for entry in parse_entries(body)]
    return [parse_series(entry.body) for entry in entries if entry.kind == EntryKind.SERIES]


def make_rows(packet: InboxPacket | ReceiptPacket, device: bytes, sent: dict[bytes, Series]) -> list[tuple[int, bytes]]:
    if isinstance(packet, InboxPacket):
        return [(one.sequence, one.make_row(device).compute_hash()) for one in packet.deliveries]
    own = {series.counter: series for series in sent.values() if series.sender == device}
    rows = [row for counter, first in packet.receipts for row in own[counter].make_rows(first)]
    return [(row.sequence, row.compute_hash()) for row in rows]


@pytest.mark.parametrize("seed", range(5))
def test_fast_rows_equal_their_definition(seed: int) -> None:
    """The one pass over bytes against the objects of `series.py`."""
    dice = random.Random(seed)
    lists = [[dice.sample(IDS, dice.randrange(1, 7)) for _ in range(dice.randrange(1, 4))] for _ in range(5)]
    encoded = [make_series(IDS[0], number, *listed, seed=seed) for number, listed in enumerate(lists)]
    frame = compute_frame_rows(7, b"".join(encode_entry(EntryKind.SERIES, IDS[0], one) for one in encoded))
    expected: dict[tuple[Kind, bytes], list[bytes]] = {}
    sequence = 7 << 20
    for series in map(parse_series, encoded):
        for message, row in zip(series.messages, series.make_rows(sequence), strict=True):
            listed = row.sequence.to_bytes(8, "big")
            expected.setdefault((Kind.SENT, IDS[0]), []).append(listed + row.compute_hash())
            for place, recipient in enumerate(message.recipients):
                received = make_received_row(row, place).compute_hash()
                expected.setdefault((Kind.RECEIVED, recipient), []).append(listed + received)
        sequence += len(series.messages)
    assert (frame.rows, frame.message_count) == (expected, sequence - (7 << 20)), f"seed {seed}"


@pytest.mark.parametrize("seed", range(3))
def test_kernel_equals_its_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is signed and what is delivered, by both ways; where no kernel is built there is one way only."""

    def run() -> list[object]:
        world = play(World(), seed)
        found: list[object] = [kernel.check_batch(encode_list([series.encode()])) for series in iterate_series(world)]
        for epoch, body in enumerate(world.frames):
            frame = kernel.make_leaves(epoch, body, KEY.secret, world.attestor.ends)
            root, paths = kernel.hang_leaves(KEY.public, epoch, frame.leaves)
            closes = encode_shard_closes(bytes(184), frame.leaves, paths, frame.digests, 3)
            found += [frame, root, list(paths), [kernel.make_packets(epoch, body, close) for close in closes]]
        return found

    natively = run()
    monkeypatch.setattr(kernel, "IS_NATIVE", False)
    assert run() == natively, f"seed {seed}"


def test_kernel_refuses_what_the_definition_refuses() -> None:
    """A byte changed, cut off or added: both ways agree whether it is still a series."""
    for seed in range(300):
        dice, data = random.Random(seed), make_series(IDS[0], 1, [IDS[1]], [IDS[2], IDS[3]])
        place = dice.randrange(len(data))
        changed = data[:place] + bytes([dice.randrange(256)]) + data[place + 1 :]
        assert_same_judgement([data[:place], data + b"x", changed][seed % 3], f"seed {seed}")


def assert_same_judgement(data: bytes, seed: str) -> None:
    try:
        expected = parse_series(data).counter
    except InvalidInput:
        with pytest.raises(InvalidInput):
            kernel.check_batch(encode_list([data]))
    else:
        assert kernel.check_batch(encode_list([data])).counter == expected, seed


def test_idle_client_gets_its_empty_leaf_on_demand(world: World) -> None:
    world.ask(EntryKind.DEMAND, IDS[3], b"")
    world.cut()
    packets = [parse_packet(data) for data in world.read(IDS[3])]
    assert [(type(packet), packet.attestation.leaf.prev) for packet in packets] == [
        (ReceiptPacket, 0),
        (InboxPacket, 0),
    ]
    packets[1].attestation.verify(KEY.public, (Kind.RECEIVED, IDS[3]), 0, [])


# --- recovery


def write_logs(folder: Path, world: World, closed: int, segment_bytes_max: int = 1 << 20) -> ServerKey:
    """The logs of a server that was killed when `closed` epochs of all its frames were closed."""
    (folder / "server.key").write_bytes(bytes(KEY.signing) + KEY.secret)
    frames, closes = (SegmentLog(folder / name, segment_bytes_max=segment_bytes_max) for name in (FRAMES, CLOSES))
    for body in world.frames:
        frames.append(body)
    for record in world.closes[:closed]:
        closes.append(record.encode())
    frames.close()
    closes.close()
    return load_server_key(folder)


@pytest.mark.parametrize("closed", [0, 20])
def test_everything_is_rebuilt_bit_by_bit(tmp_path: Path, closed: int) -> None:
    """Whatever was closed when the server died: the same roots, the same packets, no second root of an epoch."""
    world = play(World(), 7)
    for device in IDS[:3]:
        world.ask(EntryKind.DELETE, device, (10 << 20).to_bytes(8, "big"))
    world.cut()
    key = write_logs(tmp_path, world, closed)
    closes = SegmentLog(tmp_path / CLOSES)
    attestor = recover_attestor(tmp_path, key, closes, world.epoch)
    assert [parse_close_record(bytes(record.body)) for record in closes.read(1)] == world.closes
    assert (attestor.previous, attestor.ends) == (world.attestor.previous, world.attestor.ends)
    for shards in (1, 4):
        rebuilt = [recover_shard(tmp_path, key, number, shards, world.epoch) for number in range(shards)]
        for device in IDS:
            client = rebuilt[get_shard(device, shards)].get_client(device)
            assert [packet.data for packet in client.inbox.read(0)] == world.read(device)
            assert client.accepted == world.find(device).get_client(device).accepted
    closes.close()


@pytest.mark.parametrize(("at", "known"), [(17, 0), (17, 32), (32, 0)])
def test_snapshot_replaces_the_log_and_changes_nothing(tmp_path: Path, at: int, known: int) -> None:
    world = play(World(), 7)
    for device in IDS[:3]:
        world.ask(EntryKind.DELETE, device, (10 << 20).to_bytes(8, "big"))
    world.cut()
    key = write_logs(tmp_path, world, world.epoch, segment_bytes_max=1)
    compact(tmp_path, key, at, known=known)
    compact(tmp_path, key, at - 1)  # what is replaced already stays so
    assert [record.number for record in read_log(tmp_path / FRAMES, at + 1)] == list(range(at + 1, world.epoch + 1))
    assert len(list_segments(tmp_path / FRAMES)) == max(1, world.epoch - at)
    attestor = load_attestor(tmp_path, key, world.epoch)
    assert (attestor.previous, attestor.ends) == (world.attestor.previous, world.attestor.ends)
    for shards in (1, 4):
        rebuilt = [recover_shard(tmp_path, key, number, shards, world.epoch) for number in range(shards)]
        for device in IDS:
            client = rebuilt[get_shard(device, shards)].get_client(device)
            assert [packet.data for packet in client.inbox.read(0)] == world.read(device)
        assert all(shard.directory == world.parts[0].directory for shard in rebuilt)


def test_snapshot_holds_nothing_that_was_deleted_since(tmp_path: Path) -> None:
    world = play(World(), 7)
    for device in IDS:
        world.ask(EntryKind.DELETE, device, (world.epoch << 20).to_bytes(8, "big"))
    world.cut()
    key = write_logs(tmp_path, world, world.epoch, segment_bytes_max=1)
    assert any(client.inbox.packets for client in recover_shard(tmp_path, key, 0, 1, 17).clients.values())
    compact(tmp_path, key, 17, known=world.epoch)
    assert not any(client.inbox.packets for client in load_snapshot(tmp_path).clients.values())


def test_damaged_snapshot_is_refused(tmp_path: Path) -> None:
    world = play(World(), 7)
    key = write_logs(tmp_path, world, world.epoch, segment_bytes_max=1)
    compact(tmp_path, key, 9)
    data = bytearray((tmp_path / "snapshot").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "snapshot").write_bytes(data)
    with pytest.raises(InvalidInput, match="the snapshot is damaged"):
        recover_shard(tmp_path, key, 0, 1, world.epoch)


def test_log_trimmed_without_its_snapshot_is_refused(tmp_path: Path) -> None:
    world = play(World(), 7)
    key = write_logs(tmp_path, world, world.epoch, segment_bytes_max=1)
    compact(tmp_path, key, 9)
    (tmp_path / "snapshot").unlink()
    with pytest.raises(InvalidInput, match="record `1` is missing, `10` is its first"):
        recover_shard(tmp_path, key, 0, 1, world.epoch)


def test_close_without_its_frame_is_refused(tmp_path: Path) -> None:
    """A server that lost a frame it has signed must not go on."""
    world = play(World(), 1)
    frames = world.frames
    world.frames = frames[:-1]
    key = write_logs(tmp_path, world, len(frames))
    closes = SegmentLog(tmp_path / CLOSES)
    with pytest.raises(InvalidInput, match="is closed and the log ends"):
        recover_attestor(tmp_path, key, closes, len(frames) - 1)
    closes.close()


def test_log_without_its_key_is_refused(tmp_path: Path) -> None:
    write_logs(tmp_path, play(World(), 1), 0)
    (tmp_path / "server.key").unlink()
    with pytest.raises(InvalidRequest, match="holds a log"):
        load_server_key(tmp_path)

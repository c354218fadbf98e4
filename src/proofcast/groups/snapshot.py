"""Everything the server knows after an epoch, in one file, so that the logs before it can go.

snapshot = "pcgsnap" 2 | epoch u64 | last checkpoint's digest 32
           | u32 n | n x (kind u8 | client 32 | end u64)                        where the last leaves ended
           | u32 n | n x (device 32 | accepted u64 | deleted u64 | u32 n | last series
                          | u32 n | n x (end u64 | u32 n | packet))              clients and what they have not deleted
           | u32 n | n x (device 32 | u32 n | one-time keys | u32 n | fallback key)
           | u32 n | n x (epoch u64 | witness 32 | signature 64)
           | SHA-256 of all before
"""

from collections import deque
from dataclasses import dataclass, field
from hashlib import sha256
from struct import Struct

from proofcast.groups.attestation import GENESIS
from proofcast.groups.attestor import NAME_BYTES
from proofcast.groups.inbox import Directory, Inbox, Packet, Shelf, split_bundles
from proofcast.groups.server import Client
from proofcast.groups.wire import WireReader, refuse

MAGIC = b"pcgsnap\x02"
COUNT_MAX = 2**32 - 1
COSIGNED = Struct(">Q32s64s")


@dataclass(slots=True)
class Snapshot:
    epoch: int = 0
    previous: bytes = GENESIS
    ends: dict[bytes, int] = field(default_factory=dict)
    clients: dict[bytes, Client] = field(default_factory=dict)
    directory: Directory = field(default_factory=Directory)
    cosignatures: dict[int, dict[bytes, bytes]] = field(default_factory=dict)

    def encode(self) -> bytes:
        parts = [MAGIC, encode_number(self.epoch), self.previous, encode_count(len(self.ends))]
        parts += [name + encode_number(end) for name, end in self.ends.items()]
        parts += [encode_count(len(self.clients)), *(encode_client(*one) for one in self.clients.items())]
        shelves = self.directory.shelves
        parts += [encode_count(len(shelves)), *(encode_shelf(*one) for one in shelves.items())]
        found = [COSIGNED.pack(epoch, *one) for epoch, own in self.cosignatures.items() for one in own.items()]
        data = b"".join([*parts, encode_count(len(found)), *found])
        return data + sha256(data).digest()


def encode_number(number: int) -> bytes:
    return number.to_bytes(8, "big")


def encode_count(count: int) -> bytes:
    return count.to_bytes(4, "big")


def encode_bytes(data: bytes) -> bytes:
    return encode_count(len(data)) + data


def encode_client(device: bytes, client: Client) -> bytes:
    head = device + encode_number(client.accepted) + encode_number(client.inbox.deleted)
    packets = [encode_number(packet.end) + encode_bytes(packet.data) for packet in client.inbox.packets]
    return b"".join([head, encode_bytes(client.last_series), encode_count(len(packets)), *packets])


def encode_shelf(device: bytes, shelf: Shelf) -> bytes:
    return device + encode_bytes(b"".join(shelf.one_time)) + encode_bytes(shelf.fallback or b"")


def parse_snapshot(data: bytes) -> Snapshot:
    if not data.startswith(MAGIC) or sha256(data[:-32]).digest() != data[-32:]:
        raise refuse("the snapshot is damaged, or of another version")
    reader = WireReader(data[:-32], "the snapshot")
    reader.take(len(MAGIC))
    snapshot = Snapshot(reader.number(8), reader.take(32))
    for _ in range(reader.count(4, COUNT_MAX)):
        name = reader.take(NAME_BYTES)
        snapshot.ends[name] = reader.number(8)
    for _ in range(reader.count(4, COUNT_MAX)):
        device = reader.take(32)
        snapshot.clients[device] = parse_client(reader)
    for _ in range(reader.count(4, COUNT_MAX)):
        device, keys, fallback = reader.take(32), take_bytes(reader), take_bytes(reader)
        snapshot.directory.shelves[device] = Shelf(deque(split_bundles(keys)), fallback or None)
    for _ in range(reader.count(4, COUNT_MAX)):
        epoch, witness, signature = COSIGNED.unpack(reader.take(COSIGNED.size))
        snapshot.cosignatures.setdefault(epoch, {})[witness] = signature
    reader.finish()
    return snapshot


def parse_client(reader: WireReader) -> Client:
    accepted, deleted, last_series = reader.number(8), reader.number(8), take_bytes(reader)
    inbox = Inbox(deleted=deleted)
    for _ in range(reader.count(4, COUNT_MAX)):
        inbox.add(Packet(reader.number(8), take_bytes(reader)))
    return Client(inbox, accepted, accepted, last_series)


def take_bytes(reader: WireReader) -> bytes:
    return reader.take(reader.number(4))

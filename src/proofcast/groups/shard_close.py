"""What a shard is told of a signed epoch, and the packets it makes of that.

    shard close = signed 184 | count u32 | count x (kind u8 | client 32 | length u16 | leaf and path) | digests, 32 each
    packet      = version u8 | kind u8 | signed 184 | leaf and path | count u32 | receipts or deliveries

`signed` is the checkpoint with its signature, the digests are those of the frame's series.

The attestor writes the first, once for each shard; `packet.py` says what a packet is and reads it at the device.
"""

from collections.abc import Sequence
from struct import Struct

from proofcast.groups.epoch import DIGEST_BYTES, RECEIPT, Items, collect_items, get_shard
from proofcast.groups.proof import CHECKPOINT, LEAF, Kind
from proofcast.groups.series import VERSION

COUNT = Struct(">I")
ATTESTED = Struct(">B32sH")
SIGNED_BYTES = CHECKPOINT.size + 64
CLIENT = slice(1, 33)
"""Of an encoded leaf."""
PARTS = {Kind.SENT: 1, Kind.RECEIVED: 2}
"""Of which an item consists, as `collect_items` gives them."""

FilledPacket = tuple[Kind, bytes, bytes, int]
"""Kind, client, packet, and the counter of the last series that it has a receipt for, 0 where there is none."""


def encode_shard_closes(
    signed: bytes, leaves: bytes, paths: Sequence[bytes], digests: bytes, shards: int
) -> list[bytes]:
    """For each shard; `signed` is the checkpoint with its signature, `paths` are those of the encoded leaves."""
    parts: list[list[bytes]] = [[] for _ in range(shards)]
    for at, path in zip(range(0, len(leaves), LEAF.size), paths, strict=True):
        leaf = leaves[at : at + LEAF.size]
        client = leaf[CLIENT]
        attested = ATTESTED.pack(leaf[0], client, len(leaf) + len(path)) + leaf + path
        parts[get_shard(client, shards) if shards > 1 else 0].append(attested)
    return [b"".join([signed, COUNT.pack(len(part)), *part, digests]) for part in parts]


def parse_shard_close(data: bytes) -> tuple[list[tuple[Kind, bytes, bytes]], list[bytes]]:
    """Kind, client and attestation of each leaf, and the digests; from our own attestor."""
    signed, (count,), at = data[:SIGNED_BYTES], COUNT.unpack_from(data, SIGNED_BYTES), SIGNED_BYTES + COUNT.size
    attestations = []
    for _ in range(count):
        kind, client, length = ATTESTED.unpack_from(data, at)
        at += ATTESTED.size + length
        attestations.append((KINDS[kind], client, signed + data[at - length : at]))
    return attestations, [data[place : place + DIGEST_BYTES] for place in range(at, len(data), DIGEST_BYTES)]


def make_packets(epoch: int, body: bytes, close: bytes) -> list[FilledPacket]:
    """The packets of a shard's clients, from the frame and what the shard is told of its close."""
    attestations, digests = parse_shard_close(close)
    items: dict[Kind, Items] = {kind: {} for kind in Kind}
    for kind, client, _ in attestations:
        items[kind][client] = []
    collect_items(epoch, body, digests, items[Kind.SENT], items[Kind.RECEIVED])
    return [make_packet(kind, client, attestation, items[kind][client]) for kind, client, attestation in attestations]


def make_packet(kind: Kind, client: bytes, attestation: bytes, parts: list[bytes]) -> FilledPacket:
    head = bytes([VERSION, kind]) + attestation + COUNT.pack(len(parts) // PARTS[kind])
    counter = RECEIPT.unpack(parts[-1])[0] if parts and kind is Kind.SENT else 0
    return kind, client, b"".join([head, *parts]), counter


KINDS = tuple(Kind)
"""By number; a look-up is cheaper than making the enum's member."""

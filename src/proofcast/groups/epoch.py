"""From the bytes of a durable frame to the rows and the deliveries of everybody in it, written for speed.

One pass over the frame's bytes gives every client's rows; they equal those of `series.make_sent_row` and
`series.make_received_row`, which say the same with objects and serve as the oracle of the tests.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from struct import Struct

from proofcast.groups.attestation import LeafId
from proofcast.groups.frame import EntryKind, parse_entries
from proofcast.groups.proof import ABSENT, INDEX_BITS, ROW, Kind
from proofcast.groups.series import SALT_BYTES, compute_series_digest

RECEIPT = Struct(">QQ")
"""Counter and first sequence of a series."""
DELIVERY_HEAD = Struct(">Q32s32sHH")
"""Sequence, sender, series digest, index, count."""
SERIES_HEAD = Struct(">B32sQH")
LENGTH = Struct(">I")
SIZE = Struct(">H")
ENVELOPE = Struct(">32sBH")
FORM_AND_LENGTH_BYTES = 3


def get_shard(client: bytes, shards: int) -> int:
    return int.from_bytes(sha256(b"pcg1/shd" + client).digest()[:8], "big") % shards


@dataclass(slots=True)
class ScannedMessage:
    """Where the parts of a message are, inside the bytes of its series."""

    opening: bytes
    """length | common ciphertext | size, as they stand there."""
    common: bytes
    recipients: list[bytes]
    envelopes: list[bytes]
    """form | length | ciphertext of each recipient."""


@dataclass(slots=True)
class ScannedSeries:
    sender: bytes
    counter: int
    messages: list[ScannedMessage]


def scan_series(data: bytes) -> ScannedSeries:
    """The parts of a series that was parsed strictly when it was accepted."""
    _, sender, counter, count = SERIES_HEAD.unpack_from(data)
    messages, at = [], SERIES_HEAD.size
    for _ in range(count):
        begin = at
        at += LENGTH.size + LENGTH.unpack_from(data, at)[0]
        common = data[begin + LENGTH.size : at]
        (size,) = SIZE.unpack_from(data, at)
        at += SIZE.size
        opening, recipients, envelopes = data[begin:at], [], []
        for _ in range(size):
            recipient, _, length = ENVELOPE.unpack_from(data, at)
            begin, at = at + len(recipient), at + ENVELOPE.size + length
            recipients.append(recipient)
            envelopes.append(data[begin:at])
        messages.append(ScannedMessage(opening, common, recipients, envelopes))
    return ScannedSeries(sender, counter, messages)


@dataclass(slots=True)
class FrameRows:
    """What a frame says about everybody in it."""

    rows: dict[LeafId, list[tuple[int, bytes]]] = field(default_factory=dict)
    digests: list[bytes] = field(default_factory=list)
    """Of the frame's series, in order."""
    message_count: int = 0


def compute_frame_rows(epoch: int, body: bytes) -> FrameRows:
    frame = FrameRows()
    for entry in parse_entries(body):
        if entry.kind == EntryKind.SERIES:
            add_series(frame, epoch << INDEX_BITS, scan_series(entry.body))
        elif entry.kind == EntryKind.DEMAND:
            for kind in Kind:
                frame.rows.setdefault((kind, entry.client), [])
    return frame


def add_series(frame: FrameRows, start: int, series: ScannedSeries) -> None:
    described = [describe_message(message, series.sender) for message in series.messages]
    digest = compute_series_digest(series.sender, series.counter, [one.digest for one in described])
    frame.digests.append(digest)
    rows, count = frame.rows, len(described)
    sent = rows.setdefault((Kind.SENT, series.sender), [])
    for index, (message, one) in enumerate(zip(series.messages, described, strict=True)):
        sequence = start + frame.message_count + index
        head = b"pcg1/row" + ROW.pack(sequence, digest, index, count, one.sender_name, one.common, len(one.names))
        sent.append((sequence, sha256(head + one.pairs).digest()))
        absent = one.absent
        for place, recipient in enumerate(message.recipients):
            at = 64 * place
            row = head + absent[:at] + one.pairs[at : at + 64] + absent[at + 64 :]
            rows.setdefault((Kind.RECEIVED, recipient), []).append((sequence, sha256(row).digest()))
    frame.message_count += count


@dataclass(slots=True)
class Description:
    """The digests of a message that do not depend on where it stands."""

    names: list[bytes]
    sender_name: bytes
    common: bytes
    pairs: bytes
    """name | ciphertext digest of every recipient."""
    absent: bytes
    """The same with every ciphertext hidden."""
    digest: bytes


def describe_message(message: ScannedMessage, sender: bytes) -> Description:
    common, recipients = message.common, message.recipients
    blind = sha256(b"pcg1/bln" + common[1 : 1 + SALT_BYTES])
    names = []
    for recipient in recipients:
        blinded = blind.copy()
        blinded.update(recipient)
        names.append(sha256(b"pcg1/who" + blinded.digest() + recipient).digest())
    digests = [
        sha256(b"pcg1/cip" + envelope[:1] + envelope[FORM_AND_LENGTH_BYTES:]).digest() for envelope in message.envelopes
    ]
    sender_name = names[recipients.index(sender)]
    common_digest = sha256(b"pcg1/com" + common).digest()
    pairs = b"".join([part for pair in zip(names, digests, strict=True) for part in pair])
    digest = sha256(b"pcg1/msg" + sender_name + common_digest + SIZE.pack(len(names)) + pairs).digest()
    return Description(names, sender_name, common_digest, pairs, ABSENT.join(names) + ABSENT, digest)


def collect_items(
    epoch: int, body: bytes, digests: Sequence[bytes], shard: int, shards: int
) -> dict[LeafId, list[bytes]]:
    """Receipts and deliveries of the clients of one shard, encoded, by packet."""
    items: dict[LeafId, list[bytes]] = {}
    sequence = epoch << INDEX_BITS
    entries = (entry for entry in parse_entries(body) if entry.kind == EntryKind.SERIES)
    for entry, digest in zip(entries, digests, strict=True):
        series = scan_series(entry.body)
        receipt = RECEIPT.pack(series.counter, sequence)
        for leaf_id, item in chain([((Kind.SENT, series.sender), receipt)], iterate_items(series, sequence, digest)):
            if shards == 1 or get_shard(leaf_id[1], shards) == shard:
                items.setdefault(leaf_id, []).append(item)
        sequence += len(series.messages)
    return items


def iterate_items(series: ScannedSeries, first: int, digest: bytes) -> Iterator[tuple[LeafId, bytes]]:
    """The deliveries of a series, each for its recipient."""
    count = len(series.messages)
    for index, message in enumerate(series.messages):
        head = DELIVERY_HEAD.pack(first + index, series.sender, digest, index, count)
        shared = head + message.opening + b"".join(message.recipients)
        for recipient, envelope in zip(message.recipients, message.envelopes, strict=True):
            yield (Kind.RECEIVED, recipient), shared + envelope

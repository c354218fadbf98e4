"""From the bytes of a durable frame to the rows and the deliveries of everybody in it, written for speed.

One pass over the frame's bytes gives every client's rows; they equal those of `series.make_sent_row` and
`series.make_received_row`, which say the same with objects and serve as the oracle of the tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from struct import Struct

from proofcast.groups.attestation import LeafId
from proofcast.groups.frame import EntryKind, parse_entries
from proofcast.groups.proof import ABSENT, INDEX_BITS, ROW, Kind
from proofcast.groups.series import (
    FORM_AND_LENGTH_BYTES,
    ID_BYTES,
    SALT_BYTES,
    SIZE,
    ScannedMessage,
    ScannedSeries,
    compute_series_digest,
    scan_series,
)

RECEIPT = Struct(">QQ")
"""Counter and first sequence of a series."""
DELIVERY_HEAD = Struct(">Q32s32sHH")
"""Sequence, sender, series digest, index, count."""

CLIENTS_MAX = 1 << 17
"""Whose shard is remembered: thirty megabytes."""


@lru_cache(CLIENTS_MAX)
def get_shard(client: bytes, shards: int) -> int:
    """Asked for with every request, hence remembered."""
    return int.from_bytes(sha256(b"pcg1/shd" + client).digest()[:8], "big") % shards


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
    rows, count, sequence = frame.rows, len(described), start + frame.message_count
    sent = rows.setdefault((Kind.SENT, series.sender), [])
    for index, (message, one) in enumerate(zip(series.messages, described, strict=True)):
        recipients, pairs, absent = message.recipients, one.pairs, one.absent
        head = b"pcg1/row" + ROW.pack(sequence, digest, index, count, one.sender_name, one.common, len(recipients))
        sent.append((sequence, sha256(head + pairs).digest()))
        row, at = bytearray(head + absent), len(head) + ID_BYTES
        for recipient, own in zip(recipients, one.ciphertexts, strict=True):
            row[at : at + 32] = own
            leaf_id = (Kind.RECEIVED, recipient)
            if leaf_id in rows:
                rows[leaf_id].append((sequence, sha256(row).digest()))
            else:
                rows[leaf_id] = [(sequence, sha256(row).digest())]
            row[at : at + 32] = ABSENT
            at += 64
        sequence += 1
    frame.message_count += count


@dataclass(slots=True)
class Description:
    """The digests of a message that do not depend on where it stands."""

    sender_name: bytes
    common: bytes
    ciphertexts: list[bytes]
    """Digests, of every recipient."""
    pairs: bytes
    """name | ciphertext digest of every recipient."""
    absent: bytes
    """The same with every ciphertext hidden."""
    digest: bytes


def describe_message(message: ScannedMessage, sender: bytes) -> Description:
    common, recipients = message.common, message.recipients
    blind = b"pcg1/bln" + common[1 : 1 + SALT_BYTES]
    names = [sha256(b"pcg1/who" + sha256(blind + one).digest() + one).digest() for one in recipients]
    ciphertexts = [sha256(b"pcg1/cip" + one[:1] + one[FORM_AND_LENGTH_BYTES:]).digest() for one in message.envelopes]
    pairs = b"".join([part for pair in zip(names, ciphertexts, strict=True) for part in pair])
    sender_name = names[recipients.index(sender)]
    common_digest = sha256(b"pcg1/com" + common).digest()
    digest = sha256(b"pcg1/msg" + sender_name + common_digest + SIZE.pack(len(names)) + pairs).digest()
    return Description(sender_name, common_digest, ciphertexts, pairs, ABSENT.join(names) + ABSENT, digest)


Items = dict[bytes, list[bytes]]
"""Encoded parts by client."""


def collect_items(epoch: int, body: bytes, digests: Sequence[bytes], receipts: Items, deliveries: Items) -> None:
    """Add receipts, and deliveries in two parts each, to the lists of the clients that have one."""
    sequence = epoch << INDEX_BITS
    entries = (entry for entry in parse_entries(body) if entry.kind == EntryKind.SERIES)
    for entry, digest in zip(entries, digests, strict=True):
        series = scan_series(entry.body)
        if series.sender in receipts:
            receipts[series.sender].append(RECEIPT.pack(series.counter, sequence))
        count = len(series.messages)
        for index, message in enumerate(series.messages):
            head = DELIVERY_HEAD.pack(sequence + index, series.sender, digest, index, count)
            shared = head + message.opening + b"".join(message.recipients)
            for recipient, envelope in zip(message.recipients, message.envelopes, strict=True):
                if recipient in deliveries:
                    deliveries[recipient] += (shared, envelope)
        sequence += count

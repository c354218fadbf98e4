"""From the bytes of a durable frame to the rows and the deliveries of everybody in it, written for speed.

One pass over the frame's bytes gives every client's rows; they equal those of `series.make_sent_row` and
`series.make_received_row`, which say the same with objects and serve as the oracle of the tests. The log holds only
series that `series.scan_series` let pass, so nothing is judged here again, and there is no object per message.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from struct import Struct

from proofcast.groups.attestation import LeafId
from proofcast.groups.frame import EntryKind, iterate_places
from proofcast.groups.proof import ABSENT, INDEX_BITS, ROW, Kind
from proofcast.groups.series import (
    ENVELOPE_BYTES,
    ID_BYTES,
    LENGTH,
    SALT_BYTES,
    SERIES_HEAD,
    SIZE,
    Form,
    compute_common_digest,
    compute_series_digest,
    cut_message,
    unpack_envelope,
)

SENT, RECEIVED = Kind
DIGEST_BYTES = 32
PAIR_BYTES = 64
"""Name and ciphertext digest of a recipient, in a row."""
CIPHERTEXT_TAGS = [b"pcg1/cip" + bytes([form]) for form in Form]
"""What is hashed before a ciphertext, by its form."""
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


Rows = defaultdict[LeafId, list[bytes]]
"""sequence u64 | row hash 32, of every row of a leaf."""


@dataclass(slots=True)
class FrameRows:
    """What a frame says about everybody in it."""

    rows: Rows = field(default_factory=lambda: defaultdict(list))
    digests: list[bytes] = field(default_factory=list)
    """Of the frame's series, in order."""
    message_count: int = 0


def compute_frame_rows(epoch: int, body: bytes) -> FrameRows:
    frame = FrameRows()
    for kind, client, begin, _ in iterate_places(body):
        if kind == EntryKind.SERIES:
            add_series(frame, epoch << INDEX_BITS, body, begin)
        elif kind == EntryKind.DEMAND:
            for leaf_kind in Kind:
                frame.rows.setdefault((leaf_kind, client), [])
    return frame


def add_series(frame: FrameRows, start: int, body: bytes, at: int) -> None:
    """Add the rows of the series that begins at `at`; its digest, which every row names, needs all messages first."""
    _, sender, counter, count = SERIES_HEAD.unpack_from(body, at)
    described, digests, at = [], [], at + SERIES_HEAD.size
    for _ in range(count):
        description, digest, at = describe_message(body, at, sender)
        described.append(description)
        digests.append(digest)
    series = compute_series_digest(sender, counter, digests)
    sequence, sent = start + frame.message_count, frame.rows[SENT, sender]
    for index, description in enumerate(described):
        sent.append(add_message(frame.rows, (sequence + index, series, index, count), description))
    frame.digests.append(series)
    frame.message_count += count


Description = tuple[bytes, bytes, list[bytes], list[bytes], bytes]
"""Of a message, wherever it stands: the sender's name, the digest of the common ciphertext, the recipients; name and
ciphertext digest of one recipient after the other, as a list and as one byte string."""


def describe_message(body: bytes, at: int, sender: bytes) -> tuple[Description, bytes, int]:
    """Also the message's digest, and where it ends."""
    begin = at + LENGTH.size
    end = begin + LENGTH.unpack_from(body, at)[0]
    size, at = body[end : end + SIZE.size], end + SIZE.size
    blind = b"pcg1/bln" + body[begin + 1 : begin + 1 + SALT_BYTES]
    recipients: list[bytes] = []
    pairs: list[bytes] = []
    for _ in range(int.from_bytes(size, "big")):
        recipient, form, length = unpack_envelope(body, at)
        own = at + ENVELOPE_BYTES
        at = own + length
        name = sha256(b"pcg1/who" + sha256(blind + recipient).digest() + recipient).digest()
        recipients.append(recipient)
        pairs += (name, sha256(CIPHERTEXT_TAGS[form] + body[own:at]).digest())
    sender_name, common = pairs[2 * recipients.index(sender)], compute_common_digest(body[begin:end])
    joined = b"".join(pairs)
    digest = sha256(b"".join((b"pcg1/msg", sender_name, common, size, joined))).digest()
    return (sender_name, common, recipients, pairs, joined), digest, at


def add_message(rows: Rows, place: tuple[int, bytes, int, int], description: Description) -> bytes:
    """Add a message to the rows of its recipients, who are shown their own ciphertext; the row of who sent it."""
    sender_name, common, recipients, pairs, joined = description
    head, sequence = b"pcg1/row" + ROW.pack(*place, sender_name, common, len(recipients)), place[0].to_bytes(8, "big")
    hidden, at = head + ABSENT.join(pairs[::2]) + ABSENT, len(head) + ID_BYTES
    for recipient, ciphertext in zip(recipients, pairs[1::2], strict=True):
        row = hidden[:at] + ciphertext + hidden[at + DIGEST_BYTES :]
        rows[RECEIVED, recipient].append(sequence + sha256(row).digest())
        at += PAIR_BYTES
    return sequence + sha256(head + joined).digest()


def compute_listed_digest(rows: list[bytes]) -> bytes:
    """As `proof.compute_rows_digest`, of rows that are encoded already."""
    return sha256(b"pcg1/rws" + len(rows).to_bytes(4, "big") + b"".join(rows)).digest()


Items = dict[bytes, list[bytes]]
"""Encoded parts by client."""


def collect_items(epoch: int, body: bytes, digests: Iterable[bytes], receipts: Items, deliveries: Items) -> None:
    """Add receipts, and deliveries in two parts each, to the lists of the clients that have one."""
    sequence = epoch << INDEX_BITS
    begins = (begin for kind, _, begin, _ in iterate_places(body) if kind == EntryKind.SERIES)
    for begin, digest in zip(begins, digests, strict=True):
        _, sender, counter, count = SERIES_HEAD.unpack_from(body, begin)
        if sender in receipts:
            receipts[sender].append(RECEIPT.pack(counter, sequence))
        at = begin + SERIES_HEAD.size
        for index in range(count):
            head = DELIVERY_HEAD.pack(sequence + index, sender, digest, index, count)
            at = collect_deliveries(body, at, head, deliveries)
        sequence += count


def collect_deliveries(body: bytes, at: int, head: bytes, deliveries: Items) -> int:
    """Of one message; where it ends."""
    begin = at
    listed, recipients, envelopes, at = cut_message(body, begin)
    shared = b"".join((head, body[begin:listed], *recipients))
    for recipient, envelope in zip(recipients, envelopes, strict=True):
        parts = deliveries.get(recipient)
        if parts is not None:
            parts += (shared, envelope)
    return at

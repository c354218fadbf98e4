"""What the server hands a client of one epoch: its attestation, and what the attestation is about.

    inbox packet   = version u8 | 1 u8 | attestation | u32 n | n x delivery
    delivery       = sequence u64 | sender 32 | series digest 32 | index u16 | count u16 | u32 n | common ciphertext
                     | u16 n | n x recipient 32 | form u8 | u16 n | ciphertext
    receipt packet = version u8 | 0 u8 | attestation | u32 n | n x (counter u64 | first sequence u64)

The packets of one kind form a chain: each leaf begins where the one before ended.
"""

from dataclasses import dataclass
from struct import Struct

from proofcast.groups.attestation import Attestation, parse_attestation
from proofcast.groups.proof import ABSENT, Kind, Row, compute_name
from proofcast.groups.series import (
    CIPHERTEXT_BYTES_MAX,
    COMMON_BYTES_MAX,
    RECIPIENTS_MAX,
    SALT_BYTES,
    VERSION,
    Envelope,
    Form,
    compute_blind,
    compute_common_digest,
    get_salt,
    parse_form,
    verify_recipients,
)
from proofcast.groups.wire import WireReader, refuse

DELIVERY_HEAD = Struct(">Q32s32sHHI")
DELIVERIES_MAX = 1 << 20
"""As many as a frame has messages."""


@dataclass(frozen=True, slots=True)
class Delivery:
    sequence: int
    sender: bytes
    series: bytes
    index: int
    count: int
    common: bytes
    recipients: tuple[bytes, ...]
    form: Form
    ciphertext: bytes

    def encode(self) -> bytes:
        place = DELIVERY_HEAD.pack(self.sequence, self.sender, self.series, self.index, self.count, len(self.common))
        names = len(self.recipients).to_bytes(2, "big") + b"".join(self.recipients)
        own = bytes([self.form]) + len(self.ciphertext).to_bytes(2, "big") + self.ciphertext
        return place + self.common + names + own

    def make_row(self, client: bytes) -> Row:
        """The row by which the server must have attested this delivery to `client`."""
        own = Envelope(client, self.form, self.ciphertext).compute_digest()
        names = {one: self.compute_name(one) for one in self.recipients}
        recipients = tuple((names[one], own if one == client else ABSENT) for one in self.recipients)
        common = compute_common_digest(self.common)
        return Row(self.sequence, self.series, self.index, self.count, names[self.sender], common, recipients)

    def compute_name(self, client: bytes) -> bytes:
        return compute_name(self.compute_blind(client), client)

    def compute_blind(self, client: bytes) -> bytes:
        return compute_blind(get_salt(self.common), client)


@dataclass(frozen=True, slots=True)
class InboxPacket:
    attestation: Attestation
    deliveries: tuple[Delivery, ...]

    def encode(self) -> bytes:
        deliveries = b"".join(delivery.encode() for delivery in self.deliveries)
        return encode_head(Kind.RECEIVED, self.attestation, len(self.deliveries)) + deliveries


@dataclass(frozen=True, slots=True)
class ReceiptPacket:
    attestation: Attestation
    receipts: tuple[tuple[int, int], ...]
    """(counter of a series, sequence of its first message)."""

    def encode(self) -> bytes:
        numbers = (number.to_bytes(8, "big") for receipt in self.receipts for number in receipt)
        return encode_head(Kind.SENT, self.attestation, len(self.receipts)) + b"".join(numbers)


def encode_head(kind: Kind, attestation: Attestation, count: int) -> bytes:
    return bytes([VERSION, kind]) + attestation.encode() + count.to_bytes(4, "big")


def parse_packet(data: bytes) -> InboxPacket | ReceiptPacket:
    reader = WireReader(data, "the packet")
    version, kind = reader.number(1), reader.number(1)
    if version != VERSION or kind not in set(Kind):
        raise refuse(f"the packet has version `{version}` and kind `{kind}`, which are not spoken")
    attestation = parse_attestation(reader)
    count = reader.count(4, DELIVERIES_MAX)
    packet: InboxPacket | ReceiptPacket
    if kind == Kind.RECEIVED:
        packet = InboxPacket(attestation, tuple(parse_delivery(reader) for _ in range(count)))
    else:
        packet = ReceiptPacket(attestation, tuple((reader.number(8), reader.number(8)) for _ in range(count)))
    reader.finish()
    return packet


def parse_delivery(reader: WireReader) -> Delivery:
    sequence, sender, series = reader.number(8), reader.take(32), reader.take(32)
    index, count = reader.number(2), reader.number(2)
    common = reader.take(reader.count(4, COMMON_BYTES_MAX))
    if len(common) <= SALT_BYTES:
        raise refuse(f"a common ciphertext of `{len(common)}` bytes has no room for its salt")
    recipients = tuple(reader.take(32) for _ in range(reader.count(2, RECIPIENTS_MAX)))
    verify_recipients(list(recipients), sender)
    form = parse_form(reader.number(1))
    ciphertext = reader.take(reader.count(2, CIPHERTEXT_BYTES_MAX))
    return Delivery(sequence, sender, series, index, count, common, recipients, form, ciphertext)

"""A series: the messages a device sends at once, which stand side by side in the total order.

    series  = version u8 | sender 32 | counter u64 | count u16 | count x message
    message = length u32 | common ciphertext | size u16 | size x (recipient 32 | form u8 | length u16 | ciphertext)

Recipients are sorted, unique, and include the sender: everybody who acts on a message receives it in its place of the
order, the sender too. The counter grows by one with every series of a device and is never used again, so that no two
series have one digest.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from hashlib import sha256
from operator import lt
from struct import Struct

from proofcast.groups.proof import ABSENT, Row, compute_name
from proofcast.groups.wire import refuse

VERSION = 1
RECIPIENTS_MAX = 1_024
"""A row has 64 bytes for each; the paper measures up to 128."""
MESSAGES_MAX = 1_024
"""Of one series."""
COMMON_BYTES_MAX = 1 << 20
CIPHERTEXT_BYTES_MAX = 1_024
"""A per-recipient ciphertext has 127 bytes, 232 on first contact."""
SALT_BYTES = 16
ID_BYTES = 32
SERIES_HEAD = Struct(">B32sQH")
LENGTH = Struct(">I")
SIZE = Struct(">H")
ENVELOPE = Struct(">32sBH")
ENVELOPE_BYTES = ENVELOPE.size
FORM_AND_LENGTH_BYTES = ENVELOPE_BYTES - ID_BYTES
unpack_envelope = ENVELOPE.unpack_from
"""Asked for three times with every delivery, hence without the look-ups."""


class Form(IntEnum):
    """What a per-recipient ciphertext is."""

    FIRST = 0
    """Opens a session; longer, until the peer's first answer."""
    NORMAL = 1
    SELF = 2
    """For the sender itself, under a key of its own."""


FORM_MAX = int(max(Form))


@dataclass(frozen=True, slots=True)
class Envelope:
    """What one recipient alone can open."""

    recipient: bytes
    form: Form
    ciphertext: bytes

    def compute_digest(self) -> bytes:
        return sha256(b"pcg1/cip" + bytes([self.form]) + self.ciphertext).digest()


@dataclass(frozen=True)
class Message:
    sender: bytes
    common: bytes
    envelopes: tuple[Envelope, ...]

    @cached_property
    def common_digest(self) -> bytes:
        return compute_common_digest(self.common)

    @cached_property
    def names(self) -> list[bytes]:
        """Blinded names of the recipients, in order."""
        salt = get_salt(self.common)
        return [compute_name(compute_blind(salt, one.recipient), one.recipient) for one in self.envelopes]

    @cached_property
    def sender_name(self) -> bytes:
        return compute_name(compute_blind(get_salt(self.common), self.sender), self.sender)

    @property
    def recipients(self) -> tuple[bytes, ...]:
        return tuple(envelope.recipient for envelope in self.envelopes)

    def encode(self) -> bytes:
        parts = [LENGTH.pack(len(self.common)), self.common, SIZE.pack(len(self.envelopes))]
        for one in self.envelopes:
            parts += (ENVELOPE.pack(one.recipient, one.form, len(one.ciphertext)), one.ciphertext)
        return b"".join(parts)


@dataclass(frozen=True)
class Series:
    sender: bytes
    counter: int
    messages: tuple[Message, ...]

    @cached_property
    def digest(self) -> bytes:
        return compute_series_digest(self.sender, self.counter, self.message_digests)

    @cached_property
    def message_digests(self) -> list[bytes]:
        return [compute_message_digest(message) for message in self.messages]

    def make_rows(self, first: int) -> list[Row]:
        """The rows of the sender's leaf where the series stands at `first`."""
        count = len(self.messages)
        return [
            make_sent_row(message, first + index, self.digest, index, count)
            for index, message in enumerate(self.messages)
        ]

    @cached_property
    def encoded(self) -> bytes:
        head = bytes([VERSION]) + self.sender + self.counter.to_bytes(8, "big") + len(self.messages).to_bytes(2, "big")
        return head + b"".join(message.encode() for message in self.messages)

    def encode(self) -> bytes:
        return self.encoded


def compute_message_digest(message: Message) -> bytes:
    pairs = zip(message.names, message.envelopes, strict=True)
    parts = b"".join(name + envelope.compute_digest() for name, envelope in pairs)
    count = len(message.envelopes).to_bytes(2, "big")
    return sha256(b"pcg1/msg" + message.sender_name + message.common_digest + count + parts).digest()


def compute_series_digest(sender: bytes, counter: int, messages: list[bytes]) -> bytes:
    head = sender + counter.to_bytes(8, "big") + len(messages).to_bytes(2, "big")
    return sha256(b"pcg1/ser" + head + b"".join(messages)).digest()


def make_sent_row(message: Message, sequence: int, series: bytes, index: int, count: int) -> Row:
    digests = [envelope.compute_digest() for envelope in message.envelopes]
    recipients = tuple(zip(message.names, digests, strict=True))
    return Row(sequence, series, index, count, message.sender_name, message.common_digest, recipients)


def make_received_row(sent: Row, place: int) -> Row:
    """What the recipient at `place` of the list is shown of a message."""
    recipients = tuple((name, digest if at == place else ABSENT) for at, (name, digest) in enumerate(sent.recipients))
    return Row(sent.sequence, sent.series, sent.index, sent.count, sent.sender, sent.common, recipients)


def compute_common_digest(common: bytes) -> bytes:
    return sha256(b"pcg1/com" + common).digest()


def get_salt(common: bytes) -> bytes:
    """The random bytes a common ciphertext begins with, after its version."""
    return common[1 : 1 + SALT_BYTES]


def compute_blind(salt: bytes, client: bytes) -> bytes:
    return sha256(b"pcg1/bln" + salt + client).digest()


def scan_series(data: bytes) -> tuple[bytes, int, list[list[bytes]]]:
    """Sender, counter, and the recipients of every message; refuses whatever is no series."""
    try:
        version, sender, counter, count = SERIES_HEAD.unpack_from(data)
        if version != VERSION:
            raise refuse(f"the series has version `{version}` where `{VERSION}` is spoken")
        if not 0 < count <= MESSAGES_MAX:
            raise refuse(f"the series has `{count}` messages where 1 to `{MESSAGES_MAX}` are allowed")
        lists, at = [], SERIES_HEAD.size
        for _ in range(count):
            recipients, at = scan_message(data, at)
            verify_recipients(recipients, sender)
            lists.append(recipients)
    except struct.error:
        raise refuse(f"the series ends after `{len(data)}` bytes, inside a field") from None
    if at != len(data):
        raise refuse(f"the series has `{len(data)}` bytes where `{at}` are announced")
    return sender, counter, lists


def scan_message(data: bytes, at: int) -> tuple[list[bytes], int]:
    """The recipients of the message at a place, and where it ends."""
    (length,) = LENGTH.unpack_from(data, at)
    if not SALT_BYTES < length <= COMMON_BYTES_MAX:
        raise refuse(f"the series has a common ciphertext of `{length}` bytes: no room for its salt, or too long")
    at += LENGTH.size + length
    (size,) = SIZE.unpack_from(data, at)
    if size > RECIPIENTS_MAX:
        raise refuse(f"the series announces `{size}` recipients where at most `{RECIPIENTS_MAX}` are allowed")
    at += SIZE.size
    recipients = []
    for _ in range(size):
        recipient, form, length = unpack_envelope(data, at)
        if form > FORM_MAX or length > CIPHERTEXT_BYTES_MAX:
            raise refuse(f"the series has a ciphertext of form `{form}` and `{length}` bytes: not allowed")
        recipients.append(recipient)
        at += ENVELOPE_BYTES + length
    return recipients, at


def verify_recipients(recipients: list[bytes], sender: bytes) -> None:
    if not all(map(lt, recipients, recipients[1:])):
        raise refuse("the recipients of a message are not sorted and unique")
    if sender not in recipients:
        raise refuse(f"the recipients of a message do not include its sender `{sender.hex()}`")


def parse_series(data: bytes) -> Series:
    sender, counter, lists = scan_series(data)
    messages, at = [], SERIES_HEAD.size
    for _ in lists:
        begin = at
        listed, recipients, envelopes, at = cut_message(data, at)
        common = data[begin + LENGTH.size : listed - SIZE.size]
        messages.append(make_message(sender, common, recipients, envelopes))
    return Series(sender, counter, tuple(messages))


def cut_message(data: bytes, at: int) -> tuple[int, list[bytes], list[bytes], int]:
    """Of a message that was scanned before: where its recipients begin, who they are, what each gets, where it ends.

    What each gets is form | length | ciphertext, as it stands there.
    """
    listed = at + LENGTH.size + LENGTH.unpack_from(data, at)[0] + SIZE.size
    (size,) = SIZE.unpack_from(data, listed - SIZE.size)
    recipients, envelopes, at = [], [], listed
    for _ in range(size):
        recipient, _, length = unpack_envelope(data, at)
        begin, at = at + ID_BYTES, at + ENVELOPE_BYTES + length
        recipients.append(recipient)
        envelopes.append(data[begin:at])
    return listed, recipients, envelopes, at


def make_message(sender: bytes, common: bytes, recipients: list[bytes], envelopes: list[bytes]) -> Message:
    pairs = zip(recipients, envelopes, strict=True)
    made = (Envelope(recipient, Form(sealed[0]), sealed[FORM_AND_LENGTH_BYTES:]) for recipient, sealed in pairs)
    return Message(sender, common, tuple(made))


def parse_form(number: int) -> Form:
    if number not in set(Form):
        raise refuse(f"a ciphertext has the unknown form `{number}`")
    return Form(number)

"""The two ciphertexts of a message: one for all recipients, one for each.

    common ciphertext = version u8 | salt 16 | commitment 32 | AES-256-GCM(key, nonce 0, common plaintext)
    common plaintext  = sort u8 | sender 32 | counter u64 | index u16 | count u16 | recipients digest 32 | body
    per recipient     = flags u8 | key 32 | head 32 | index u48 | own generation u32 | peer's generation u32

The key is drawn anew for every message, hence the constant nonce. AES-GCM does not commit to its key: a liar could give
two recipients two keys under which one ciphertext says two things. The commitment, HMAC-SHA256(key, "commit"), is part
of what the transcript and the server's rows close over, and every recipient checks it. What each recipient gets alone
has one length whatever it says, so that its length shows only whether a session is new.
"""

import hmac
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import sha256
from struct import Struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from proofcast.groups.series import SALT_BYTES, VERSION
from proofcast.groups.wire import refuse

COMMON_HEAD = Struct(">B32sQHH32s")
PAYLOAD = Struct(">B32s32s6sII")
PAYLOAD_BYTES = PAYLOAD.size
"""79: with one byte more the ratchet's padding would add a block."""
NONCE = bytes(12)
HEADER_BYTES = 1 + SALT_BYTES + 32
HAS_VALIDATION = 1
LISTS_MAX = 64
"""Of recipients whose digest is remembered: a device writes to the same few groups."""


class Sort(IntEnum):
    """What the body of a message is."""

    OPERATION = 0
    """The application's."""
    ACK = 1
    """Empty: ends the longer form of first contact, carries validation."""
    QUESTION = 2
    """A peer wants evidence."""
    ANSWER = 3
    """The evidence."""


@dataclass(frozen=True, slots=True)
class CommonPlaintext:
    sort: Sort
    sender: bytes
    counter: int
    index: int
    count: int
    recipients: bytes
    """Digest of the list."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Payload:
    """What one recipient alone reads: the message's key, and the sender's view of their shared history."""

    key: bytes
    head: bytes | None
    """Of the sender's transcript with this recipient after `index` entries; None where it says nothing this time."""
    index: int
    generation: int
    peer_generation: int

    def encode(self) -> bytes:
        flags = 0 if self.head is None else HAS_VALIDATION
        head, index = self.head or bytes(32), self.index.to_bytes(6, "big")
        return PAYLOAD.pack(flags, self.key, head, index, self.generation, self.peer_generation)


def parse_payload(data: bytes) -> Payload:
    if len(data) != PAYLOAD_BYTES:
        raise refuse(f"a payload has `{len(data)}` bytes where `{PAYLOAD_BYTES}` are due")
    flags, key, head, index, generation, peer_generation = PAYLOAD.unpack(data)
    is_silent = (flags, head, index) == (0, bytes(32), bytes(6))
    if not is_silent and flags != HAS_VALIDATION:
        raise refuse(f"a payload has the flags `{flags}`, which are not spoken")
    return Payload(key, None if is_silent else head, int.from_bytes(index, "big"), generation, peer_generation)


@lru_cache(LISTS_MAX)
def compute_recipients_digest(recipients: tuple[bytes, ...]) -> bytes:
    return sha256(b"pcg1/rcp" + len(recipients).to_bytes(2, "big") + b"".join(recipients)).digest()


def compute_commitment(key: bytes) -> bytes:
    return hmac.digest(key, b"commit", "sha256")


def seal_common(plain: CommonPlaintext, key: bytes, salt: bytes) -> bytes:
    head = COMMON_HEAD.pack(plain.sort, plain.sender, plain.counter, plain.index, plain.count, plain.recipients)
    header = bytes([VERSION]) + salt + compute_commitment(key)
    return header + AESGCM(key).encrypt(NONCE, head + plain.body, header)


def open_common(common: bytes, key: bytes) -> CommonPlaintext:
    header, sealed = common[:HEADER_BYTES], common[HEADER_BYTES:]
    if header[:1] != bytes([VERSION]) or header[1 + SALT_BYTES :] != compute_commitment(key):
        raise refuse("the common ciphertext is committed to another key than this recipient was given")
    try:
        plain = AESGCM(key).decrypt(NONCE, sealed, header)
    except InvalidTag:
        raise refuse("the common ciphertext does not open with its key") from None
    if len(plain) < COMMON_HEAD.size:
        raise refuse(f"the common plaintext has only `{len(plain)}` bytes")
    number, sender, counter, index, count, recipients = COMMON_HEAD.unpack(plain[: COMMON_HEAD.size])
    if number not in set(Sort):
        raise refuse(f"the message is of the unknown sort `{number}`")
    return CommonPlaintext(Sort(number), sender, counter, index, count, recipients, plain[COMMON_HEAD.size :])

"""A server's key gives way to another: the last thing that the old one signs.

    statement = "pcgnext" 1 | old key 32 | new key 32 | last epoch u64 | signature 64, by the old key

The key is the server: what it has signed can convict it, and a proof names one key. So no order continues under another
one. A server that needs a new key ends, and a new one with a log of its own begins; the statement tells devices that
this is no stranger. A thief of the key can say so, too: where that may be, compare the new key with its operator's.
"""

from dataclasses import dataclass
from struct import Struct

from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from proofcast.errors import InvalidInput, Reason

MAGIC = b"pcgnext\x01"
STATEMENT = Struct(">8s32s32sQ")
SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Succession:
    old: bytes
    new: bytes
    epoch: int
    """The last one that the old key signed; what names a later one under it is a lie or a theft."""

    def encode(self) -> bytes:
        return STATEMENT.pack(MAGIC, self.old, self.new, self.epoch)


def sign_succession(key: SigningKey, new: bytes, epoch: int) -> bytes:
    statement = Succession(bytes(key.verify_key), new, epoch).encode()
    return statement + bytes(key.sign(statement).signature)


def verify_succession(data: bytes, old: bytes) -> Succession:
    """What the old key says about its successor."""
    if len(data) != STATEMENT.size + SIGNATURE_BYTES or not data.startswith(MAGIC):
        raise refuse(f"`{len(data)}` bytes are no statement about a server's key")
    _, named, new, epoch = STATEMENT.unpack_from(data)
    if named != old:
        raise refuse(f"the statement is by the server `{named.hex()}`, not by `{old.hex()}`")
    try:
        VerifyKey(old).verify(data[: STATEMENT.size], data[STATEMENT.size :])
    except (CryptoError, ValueError):
        raise refuse(f"the statement is not signed by `{old.hex()}`") from None
    return Succession(old, new, epoch)


def refuse(message: str) -> InvalidInput:
    return InvalidInput(Reason.DISAGREES, message, hint="get the statement from the operator of the old server")

"""Who a device is: its Ed25519 key. Addresses people exchange, numbers they compare, keys it vouches for.

    address = "PCG1" + base32(id 32 | checksum 3)                                  60 characters, QR alphanumeric
    bundle  = id 32 | curve key 32 | fallback u8 | one-time key 32 | signature 64

A bundle is signed by the identity over everything before the signature, so that a server in the middle cannot offer
keys of its own.
"""

import base64
import binascii
from dataclasses import dataclass
from hashlib import sha256, sha512

from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.groups.wire import WireReader

ADDRESS_PREFIX = "PCG1"
ADDRESS_HINT = "an address is PCG1 and 56 letters and digits; ask for it again, or scan the QR code"
BUNDLE_BYTES = 161
DIGITS_PER_DEVICE = 30
"""As many as Signal shows: about 100 bits, short enough to be read aloud."""


def encode_address(device: bytes) -> str:
    return ADDRESS_PREFIX + base64.b32encode(device + compute_checksum(device)).decode()


def parse_address(text: str) -> bytes:
    """The device id; blanks and lower case are forgiven, a wrong letter is not."""
    compact = "".join(text.split()).upper()
    try:
        data = base64.b32decode(compact.removeprefix(ADDRESS_PREFIX))
    except (binascii.Error, ValueError):
        data = b""
    if not compact.startswith(ADDRESS_PREFIX) or len(data) != 35:
        raise InvalidRequest(Reason.BAD_ARGUMENT, f"`{text}` is not the address of a device", hint=ADDRESS_HINT)
    device, checksum = data[:32], data[32:]
    if checksum != compute_checksum(device):
        raise InvalidRequest(Reason.BAD_ARGUMENT, f"the address `{text}` has a wrong letter", hint=ADDRESS_HINT)
    return device


def compute_checksum(device: bytes) -> bytes:
    return sha256(b"pcg1/adr" + device).digest()[:3]


def compute_fingerprint(device: bytes) -> str:
    """Six groups of five digits."""
    digest = sha512(b"pcg1/fin" + device).digest()
    groups = (int.from_bytes(digest[at : at + 5], "big") % 100_000 for at in range(0, DIGITS_PER_DEVICE, 5))
    return " ".join(f"{group:05}" for group in groups)


def compute_safety_number(one: bytes, other: bytes) -> str:
    """The same for both: two people who read equal numbers to each other have nobody in the middle."""
    return " ".join(compute_fingerprint(device) for device in sorted((one, other)))


def verify_signed(device: bytes, signed: bytes, signature: bytes, what: str) -> None:
    try:
        VerifyKey(device).verify(signed, signature)
    except (CryptoError, ValueError):
        raise InvalidInput(
            Reason.DISAGREES,
            f"{what} is not signed by `{encode_address(device)}`",
            hint="somebody stands between you and that device; compare safety numbers",
        ) from None


@dataclass(frozen=True, slots=True)
class KeyBundle:
    """What a stranger needs to open a session with a device."""

    device: bytes
    curve_key: bytes
    is_fallback: bool
    """Used repeatedly when one-time keys have run out, and replaced regularly."""
    key: bytes
    signature: bytes

    def get_signed_bytes(self) -> bytes:
        return b"pcg1/key" + self.device + self.curve_key + bytes([self.is_fallback]) + self.key

    def encode(self) -> bytes:
        return self.get_signed_bytes()[8:] + self.signature

    def verify(self, device: bytes) -> None:
        """Raise unless `device`, whom the caller wanted, vouches for these keys."""
        verify_signed(device, self.get_signed_bytes(), self.signature, "a one-time key")


def parse_bundle(data: bytes) -> KeyBundle:
    reader = WireReader(data, "the key bundle")
    device, curve_key = reader.take(32), reader.take(32)
    is_fallback = reader.count(1, 1) == 1
    bundle = KeyBundle(device, curve_key, is_fallback, reader.take(32), reader.take(64))
    reader.finish()
    return bundle

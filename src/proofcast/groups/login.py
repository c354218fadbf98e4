"""Who is calling: a device proves once that it holds its identity key, and gets a token for the calls that follow.

    device -> server   device id
    server -> device   challenge = expiry | MAC(secret, "challenge", device, expiry)
    device -> server   challenge, signature over (LOGIN, server key, challenge) by the identity key
    server -> device   token = device | expiry | MAC(secret, "token", device, expiry)

The server keeps nothing between the steps. The server's key is under the signature, so that one server cannot log in at
another with what a device gave it. A token is worth as much as the connection that carries it: use TLS beyond loopback.
"""

import hashlib
import hmac
import struct

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from proofcast.errors import InvalidRequest, Reason

LOGIN = b"proofcast/groups/login/1\0"
CHALLENGE_S_MAX = 60
"""Time to sign a challenge, over a slow network."""
TOKEN_S_MAX = 3600
"""A stolen token is of use for an hour; a new one costs a signature."""
DEVICE_BYTES = 32
EXPIRY = struct.Struct(">Q")
MAC_BYTES = 32
CHALLENGE_BYTES = EXPIRY.size + MAC_BYTES
TOKEN_BYTES = DEVICE_BYTES + CHALLENGE_BYTES
SIGNATURE_BYTES = 64


def compute_mac(secret: bytes, purpose: bytes, device: bytes, expiry: bytes) -> bytes:
    return hmac.digest(secret, purpose + device + expiry, hashlib.sha256)


def compute_challenge(secret: bytes, device: bytes, now: float) -> bytes:
    expiry = EXPIRY.pack(int(now) + CHALLENGE_S_MAX)
    return expiry + compute_mac(secret, b"challenge", device, expiry)


def sign_challenge(key: SigningKey, server: bytes, challenge: bytes) -> bytes:
    """What the device answers with."""
    return bytes(key.sign(LOGIN + server + challenge).signature)


def compute_token(secret: bytes, device: bytes, now: float) -> bytes:
    expiry = EXPIRY.pack(int(now) + TOKEN_S_MAX)
    return device + expiry + compute_mac(secret, b"token", device, expiry)


def verify_login(secret: bytes, server: bytes, device: bytes, challenge: bytes, signature: bytes, now: float) -> bytes:
    """The token of a device that signed our challenge in time."""
    verify_mac(secret, b"challenge", device, challenge, now)
    try:
        VerifyKey(device).verify(LOGIN + server + challenge, signature)
    except (BadSignatureError, ValueError):
        raise refuse(f"the device `{device.hex()}` did not sign the challenge") from None
    return compute_token(secret, device, now)


def verify_token(secret: bytes, token: bytes, now: float) -> bytes:
    """The device a token was given to."""
    device = token[:DEVICE_BYTES]
    verify_mac(secret, b"token", device, token[DEVICE_BYTES:], now)
    return device


def get_expiry(token: bytes) -> float:
    """Of a token that holds."""
    return float(EXPIRY.unpack_from(token, DEVICE_BYTES)[0])


def verify_mac(secret: bytes, purpose: bytes, device: bytes, sealed: bytes, now: float) -> None:
    expiry, mac = sealed[: EXPIRY.size], sealed[EXPIRY.size :]
    if len(device) != DEVICE_BYTES or len(sealed) != CHALLENGE_BYTES:
        raise refuse("the credentials have a wrong length")
    if not hmac.compare_digest(mac, compute_mac(secret, purpose, device, expiry)):
        raise refuse("the credentials are not of this server")
    if EXPIRY.unpack(expiry)[0] < now:
        raise refuse("the credentials have expired")


def refuse(message: str) -> InvalidRequest:
    return InvalidRequest(Reason.NOT_ALLOWED, message, hint="log in again with the device's identity key")

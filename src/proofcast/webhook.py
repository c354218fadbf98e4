"""Signatures of webhooks, as Standard Webhooks describes them: made by the broker, checked by whoever receives.

What is signed is `id.timestamp.body`, the three joined by dots, so that neither can be exchanged and an old delivery
cannot be sent again. The header may hold several signatures separated by spaces, so that a key can be exchanged without
losing a delivery: `v1,` with HMAC-SHA256 under a shared secret (`whsec_...`), `v1a,` with Ed25519 under a private key
(`whsk_...`) that the receiver checks with the public one (`whpk_...`).
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from proofcast.errors import InvalidInput, InvalidRequest, Reason

TOLERANCE_S = 300
"""How far the receiver's clock may be from ours: the standard's five minutes."""
SECRET_LENGTHS = range(24, 65)
"""Bytes of a shared secret that the standard allows."""
SEED_LENGTH = 32
KEYS_KEPT = 1_024
"""Keys whose bytes are kept: a sender uses the same one for every delivery."""
SIGNATURES_MAX = 8
"""Signatures looked at in one header; a rotation needs two."""


@dataclass(frozen=True, slots=True)
class Signed:
    """The three headers of a delivery."""

    id: str
    timestamp: str
    signature: str

    @property
    def headers(self) -> dict[str, str]:
        return {"webhook-id": self.id, "webhook-timestamp": self.timestamp, "webhook-signature": self.signature}


def sign(keys: Iterable[str], message_id: str, now_s: int, body: bytes) -> Signed:
    """Sign with every key; the first is the newest."""
    content = build_content(message_id, str(now_s), body)
    return Signed(message_id, str(now_s), " ".join([sign_with(key, content) for key in keys]))


def verify(keys: Iterable[str], signed: Signed, body: bytes, now_s: int) -> None:
    """Raise unless one of the keys made one of the signatures, lately."""
    if not (signed.timestamp.isascii() and signed.timestamp.isdigit()):
        raise reject(f"the timestamp `{ascii(signed.timestamp[:32])[1:-1]}` is no number")
    age_s = now_s - int(signed.timestamp)
    if abs(age_s) > TOLERANCE_S:
        raise reject(f"it was signed `{age_s}` seconds ago, allowed are `{TOLERANCE_S}`")
    content = build_content(signed.id, signed.timestamp, body)
    offered = signed.signature.split(" ")[:SIGNATURES_MAX]
    if not any(is_signed_by(key, signature, content) for key in keys for signature in offered):
        raise reject("no signature of it was made with a key we know")


def get_public_key(private_key: str) -> str:
    """What the receiver needs to check `v1a` signatures."""
    public = SigningKey(read_key(private_key, "whsk_")).verify_key.encode()
    return "whpk_" + base64.b64encode(public).decode()


def build_content(message_id: str, timestamp: str, body: bytes) -> bytes:
    return f"{message_id}.{timestamp}.".encode() + body


def sign_with(key: str, content: bytes) -> str:
    if key.startswith("whsk_"):
        signature = SigningKey(read_key(key, "whsk_")).sign(content).signature
        return "v1a," + base64.b64encode(signature).decode()
    made = open_hmac(key).copy()
    made.update(content)
    return "v1," + base64.b64encode(made.digest()).decode()


def is_signed_by(key: str, signature: str, content: bytes) -> bool:
    if key.startswith("whsec_"):
        return hmac.compare_digest(signature.encode(), sign_with(key, content).encode())
    if not signature.startswith("v1a,"):
        return False
    try:
        raw = base64.b64decode(signature.removeprefix("v1a,"), validate=True)
        VerifyKey(read_key(key, "whpk_")).verify(content, raw)
    except (BadSignatureError, ValueError, binascii.Error):
        return False
    return True


@lru_cache(KEYS_KEPT)
def open_hmac(key: str) -> hmac.HMAC:
    """To copy: what the key does to it takes as long as a short message."""
    return hmac.new(read_key(key, "whsec_"), digestmod=hashlib.sha256)


@lru_cache(KEYS_KEPT)
def read_key(text: str, prefix: str) -> bytes:
    """The bytes of a key; the message never repeats it."""
    try:
        key = base64.b64decode(text.removeprefix(prefix), validate=True) if text.startswith(prefix) else b""
    except (ValueError, binascii.Error):
        key = b""
    if len(key) not in (SECRET_LENGTHS if prefix == "whsec_" else (SEED_LENGTH,)):
        raise InvalidRequest(
            Reason.BAD_KEY,
            f"the webhook key is not `{prefix}` and base64 of a key's length",
            hint="`whsec_` takes 24 to 64 bytes, `whsk_` and `whpk_` take 32",
        )
    return key


def reject(fault: str) -> InvalidInput:
    return InvalidInput(
        Reason.DISAGREES, f"the delivery is refused: {fault}", hint="do not act on it; the sender will try again"
    )

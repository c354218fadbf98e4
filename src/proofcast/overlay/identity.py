"""Who a peer is: a public key, the place in the key space that follows from it, and an address it vouches for.

Peers and attributes share one key space of 256 bits. A peer's position is the SHA-256 of its libp2p peer id, exactly
where Kademlia implementations on libp2p see it; an attribute's key is the SHA-256 of its name. Because a position is a
hash of a public key and every contact is signed, nobody can announce somebody else, or an address that the owner of
the key has not chosen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

import cbor2
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

KEY_BITS = 256
ED25519_PEER_ID_PREFIX = bytes.fromhex("002408011220")
"""Identity multihash of the protobuf `PublicKey{Ed25519, 32 bytes}`: how libp2p writes such a peer id."""

Verify = Callable[[bytes, bytes, bytes], bool]
"""(public key, data, signature): is it that key's signature of the data?"""


class Signer(Protocol):
    """Holds one private key: Ed25519 on real hosts, a keyed hash in large simulations."""

    public_key: bytes

    def sign(self, data: bytes) -> bytes: ...


class Ed25519Signer:
    """The key pair that follows from a seed of 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = SigningKey(seed)
        self.public_key = bytes(self._key.verify_key)

    def sign(self, data: bytes) -> bytes:
        return self._key.sign(data).signature


def verify_ed25519(public_key: bytes, data: bytes, signature: bytes) -> bool:
    try:
        VerifyKey(public_key).verify(data, signature)
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True


@lru_cache(maxsize=1 << 18)
def compute_position(public_key: bytes) -> int:
    """Where the owner of the key stands in the key space."""
    return int.from_bytes(sha256(ED25519_PEER_ID_PREFIX + public_key).digest())


@lru_cache(maxsize=1 << 16)
def compute_key(attribute: str) -> int:
    """Where an attribute stands in the key space; the closest peer is its rendezvous."""
    return int.from_bytes(sha256(attribute.encode()).digest())


@dataclass(frozen=True, slots=True)
class Contact:
    """How to reach a peer, in its own words."""

    public_key: bytes
    address: str
    """A multiaddress; empty where the peer cannot be dialled and must be answered on a connection it opened."""
    signature: bytes
    position: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", compute_position(self.public_key))


def encode_contact_claim(public_key: bytes, address: str) -> bytes:
    return cbor2.dumps(["proofcast contact", public_key, address])


def make_contact(signer: Signer, address: str) -> Contact:
    return Contact(signer.public_key, address, signer.sign(encode_contact_claim(signer.public_key, address)))


@lru_cache(maxsize=1 << 16)
def is_contact_genuine(contact: Contact, verify: Verify) -> bool:
    claim = encode_contact_claim(contact.public_key, contact.address)
    return verify(contact.public_key, claim, contact.signature)

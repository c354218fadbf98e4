"""Signatures for simulations of thousands of peers: a keyed hash, a hundred times faster than Ed25519 and forgeable.

Tests of hostile peers use real Ed25519; here nobody tries to forge.
"""

from hashlib import blake2b


class HashSigner:
    def __init__(self, seed: bytes) -> None:
        self.public_key = blake2b(seed, digest_size=32).digest()

    def sign(self, data: bytes) -> bytes:
        return blake2b(data, key=self.public_key, digest_size=16).digest()


def verify_hash(public_key: bytes, data: bytes, signature: bytes) -> bool:
    return signature == blake2b(data, key=public_key, digest_size=16).digest()

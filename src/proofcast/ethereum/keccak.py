"""The hash of everything on Ethereum."""

from eth_hash.auto import keccak

HASH_LENGTH = 32


def keccak256(data: bytes) -> bytes:
    return bytes(keccak(data))

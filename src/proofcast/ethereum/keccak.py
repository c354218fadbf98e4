"""The hash of everything on Ethereum."""

from eth_hash.auto import keccak

# Only mypy minds: it runs where the kernel is not built, too.
try:
    from proofcast_native import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        keccak256 as hash_natively,
    )
except ImportError:
    hash_natively = keccak

HASH_LENGTH = 32


def keccak256(data: bytes) -> bytes:
    return bytes(hash_natively(data))

"""Decoded values as a person reads them. Imports little: a command that checks one event has to start at once."""

from proofcast.ethereum.keccak import keccak256

ADDRESS_LENGTH = 20
UPPER_FROM = 8
"""EIP-55: a letter is upper case where the half byte of the hash at its place is at least this."""


def format_value(value: object) -> str:
    """Addresses with checksum, other bytes as hex, text made harmless."""
    if isinstance(value, bytes):
        return format_address(value) if len(value) == ADDRESS_LENGTH else "0x" + value.hex()
    return escape_controls(str(value))


def format_address(address: bytes) -> str:
    digits = address.hex()
    marks = keccak256(digits.encode()).hex()
    letters = (one.upper() if int(mark, 16) >= UPPER_FROM else one for one, mark in zip(digits, marks, strict=False))
    return "0x" + "".join(letters)


def escape_controls(text: str) -> str:
    """Text by strangers with its control characters written out, so that it cannot steer a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)

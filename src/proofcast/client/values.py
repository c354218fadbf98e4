"""Hexadecimal digits that users write."""

import re

from proofcast.errors import InvalidRequest, Reason

ADDRESS_LENGTH, TOPIC_LENGTH, HASH_LENGTH = 20, 32, 32
HEX = re.compile(r"0x[0-9a-fA-F]*")


def is_hex(text: str) -> bool:
    return HEX.fullmatch(text) is not None


def parse_hex(name: str, text: str, length: int) -> bytes:
    """Exactly so many bytes; none where the text is empty."""
    if text and not (is_hex(text) and len(text) == 2 + 2 * length):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`{ascii(text[:80])[1:-1]}` is no {name}",
            hint=f"write 0x and {2 * length} hexadecimal digits",
        )
    return bytes.fromhex(text.removeprefix("0x"))

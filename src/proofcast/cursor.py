"""The cursor: a place on a chain, in text that any broker understands.

A cursor says what a subscriber holds: everything it was given up to and including one log, or up to but without it once
that log was undone. It names the log by its block's hash, so it means the same to a broker that shares nothing with the
one that made it; and it names the finalized block its maker knew, from where a broker that never saw the named block
can begin again.

Text, because it travels in headers, addresses and settings: base64url without padding of

    version 1 · chain id 8 · block number 8 · hash 32 · log index 4 · held 1 · finalized number 8 · hash 32 · check 4

all big-endian; the check is the beginning of the SHA-256 of what stands before it, so that a cursor cut or mistyped is
refused instead of pointing elsewhere.
"""

import base64
import binascii
import hashlib
import struct
from binascii import b2a_base64
from dataclasses import dataclass

from proofcast.errors import InvalidRequest, Reason

LAYOUT = struct.Struct(">BQQ32sI?Q32s")
LOG_INDEX = slice(49, 53)
"""Where the log index stands: the rest is the same for all logs of a block."""
VERSION = 1
CHECK_LENGTH = 4
URL_SAFE = bytes.maketrans(b"+/", b"-_")
TEXT_LENGTH_MAX = 200
"""Longer than any cursor of any version to come: what is longer is not even decoded."""
WHOLE_BLOCK = 0xFFFFFFFF
"""As log index: behind every log of the block. No block has so many logs."""


@dataclass(frozen=True, slots=True)
class Cursor:
    chain_id: int
    block_number: int
    block_hash: bytes
    log_index: int
    is_held: bool
    """Does the subscriber hold the log itself, or was it undone?"""
    finalized_number: int
    finalized_hash: bytes


def encode_cursor(cursor: Cursor) -> str:
    return write_cursor(
        cursor.chain_id,
        cursor.block_number,
        cursor.block_hash,
        cursor.log_index,
        cursor.is_held,
        cursor.finalized_number,
        cursor.finalized_hash,
    )


def write_cursor(
    chain_id: int,
    block_number: int,
    block_hash: bytes,
    log_index: int,
    is_held: bool,
    finalized_number: int,
    finalized_hash: bytes,
) -> str:
    """As `encode_cursor`, for a broker that writes one for every delivery."""
    body = LAYOUT.pack(
        VERSION, chain_id, block_number, block_hash, log_index, is_held, finalized_number, finalized_hash
    )
    return seal_body(body).decode()


def seal_body(body: bytes) -> bytes:
    """The cursor's text, of everything but the check."""
    return b2a_base64(body + hashlib.sha256(body).digest()[:CHECK_LENGTH], newline=False).translate(URL_SAFE, b"=")


def parse_cursor(text: str) -> Cursor:
    """The cursor that has exactly this text."""
    if len(text) > TEXT_LENGTH_MAX:
        raise refuse(text, f"it has `{len(text)}` characters")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error) as error:
        raise refuse(text, "it is no base64url") from error
    body, check = data[:-CHECK_LENGTH], data[-CHECK_LENGTH:]
    if compute_check(body) != check:
        raise refuse(text, "its check does not fit")
    if len(body) != LAYOUT.size or body[0] != VERSION:
        raise refuse(text, f"its version is not `{VERSION}`")
    cursor = Cursor(*LAYOUT.unpack(body)[1:])
    if encode_cursor(cursor) != text:
        raise refuse(text, "it is not written in its one form")
    return cursor


def compute_check(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:CHECK_LENGTH]


def refuse(text: str, fault: str) -> InvalidRequest:
    return InvalidRequest(
        Reason.BAD_ARGUMENT,
        f"`{ascii(text[:TEXT_LENGTH_MAX])[1:-1]}` is no cursor: {fault}",
        hint="use a cursor as it was delivered, or start at `oldest`, `newest`, a block, a sequence or a time",
    )

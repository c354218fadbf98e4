"""A message of an exchange, and how to read it from its log without a decoder for everything else."""

from collections.abc import Sequence
from dataclasses import dataclass

from proofcast.ethereum.keccak import keccak256
from proofcast.onchain.published import NO_BYTES, WORD

SIGNATURE = "Routed(bytes32,uint256,address,uint256,uint256,bytes,bytes)"
ROUTED = keccak256(SIGNATURE.encode())
TOPICS = 4
KEY_PLACE = 4 * WORD
"""Behind value, number of queues, and the places of key and payload."""


@dataclass(frozen=True, slots=True)
class Routed:
    """A message was published."""

    exchange: bytes
    sequence: int
    publisher: bytes
    value_wei: int
    queues: int
    """How many it was meant for."""
    key: bytes
    payload: bytes


def find_routed(topics: Sequence[bytes], data: bytes) -> Routed | None:
    """A message in the one form in which the contract writes it; `find_exchange_event` reads any form, far slower."""
    if len(topics) != TOPICS or topics[0] != ROUTED or not topics[3].startswith(NO_BYTES):
        return None
    value, queues, key_place, payload_place = (read_word(data, place) for place in range(0, KEY_PLACE, WORD))
    key = read_bytes(data, KEY_PLACE)
    payload = read_bytes(data, payload_place) if payload_place <= len(data) else None
    if key is None or payload is None or key_place != KEY_PLACE:
        return None
    if payload_place != KEY_PLACE + measure(key) or len(data) != payload_place + measure(payload):
        return None
    return Routed(topics[1], int.from_bytes(topics[2]), topics[3][12:], value, queues, key, payload)


def read_word(data: bytes, place: int) -> int:
    return int.from_bytes(data[place : place + WORD])


def read_bytes(data: bytes, place: int) -> bytes | None:
    """Length, bytes, zeros up to a whole word; None where the data end before, or the zeros are none."""
    begin, length = place + WORD, read_word(data, place)
    filled = data[begin : begin + length + -length % WORD]
    is_whole = len(filled) == length + -length % WORD and filled[length:] == bytes(-length % WORD)
    return filled[:length] if is_whole else None


def measure(value: bytes) -> int:
    """Bytes that it takes, with its length and the zeros."""
    return WORD + len(value) + -len(value) % WORD

"""Messages on a stream: too long ones are refused, others come back however the bytes are cut."""

import random

import pytest

from proofcast.errors import InvalidInput
from proofcast.groups.link import Assembly, Message, encode_list, encode_message, parse_list

MESSAGES = [Message(1, 0, b""), Message(2, 7, b"x"), Message(255, 2**64 - 1, bytes(70_000)), Message(3, 1, b"end")]


def receive(assembly: Assembly, data: bytes) -> list[Message]:
    """As much at a time as there is room for."""
    found = []
    while data:
        room = assembly.get_room()
        size = min(len(room), len(data))
        room[:size], data = data[:size], data[size:]
        found.append(assembly.take(size))
    return [message for message in found if message is not None]


def test_message_beyond_the_limit_is_refused_before_it_is_there() -> None:
    with pytest.raises(InvalidInput, match="a message of `11` bytes is longer than the `10` allowed"):
        receive(Assembly(10), encode_message(Message(1, 0, bytes(11)))[:13])


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\x05abcd"])
def test_list_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_list(data)


@pytest.mark.parametrize("seed", range(5))
def test_messages_come_back_however_they_are_cut(seed: int) -> None:
    dice, assembly, data = random.Random(seed), Assembly(100_000), b"".join(map(encode_message, MESSAGES))
    found: list[Message] = []
    while data:
        size = dice.choice([1, 4, 9, 50_000])
        found += receive(assembly, data[:size])
        data = data[size:]
    assert found == MESSAGES, f"seed {seed}"


def test_lists_come_back() -> None:
    items = [b"", b"one", bytes(9_999)]
    assert parse_list(encode_list(items)) == items

"""Messages on a stream: too long ones are refused, others come back however the bytes are cut."""

import random

import pytest

from proofcast.errors import InvalidInput
from proofcast.groups.link import MessageReader, encode_list, encode_message, parse_list

MESSAGES = [(1, b""), (2, b"x"), (255, bytes(70_000)), (3, b"end")]


def test_message_beyond_the_limit_is_refused_before_it_is_there() -> None:
    with pytest.raises(InvalidInput, match="a message of `11` bytes is longer than the `10` allowed"):
        MessageReader(10).receive(encode_message(1, bytes(11))[:5])


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\x05abcd"])
def test_list_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_list(data)


@pytest.mark.parametrize("seed", range(5))
def test_messages_come_back_however_they_are_cut(seed: int) -> None:
    dice, reader, data = random.Random(seed), MessageReader(100_000), b"".join(encode_message(*one) for one in MESSAGES)
    found = []
    while data:
        size = dice.choice([1, 4, 9, 50_000])
        found += [(message.kind, message.body) for message in reader.receive(data[:size])]
        data = data[size:]
    assert found == MESSAGES, f"seed {seed}"


def test_lists_come_back() -> None:
    items = [b"", b"one", bytes(9_999)]
    assert parse_list(encode_list(items)) == items

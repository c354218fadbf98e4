"""Messages as bytes: what is refused, then that everything survives the way there and back."""

from contextlib import suppress

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidInput
from proofcast.overlay.codec import CODECS, FrameReader, encode_frame, encode_message, encode_varint, parse_message
from proofcast.overlay.identity import Ed25519Signer, compute_key, make_contact
from proofcast.overlay.messages import FindNode, Message, Nodes, Notify, Subscribe
from proofcast.overlay.records import Event, EventId, Interest
from proofcast.overlay.settings import FRAME_BYTES_MAX
from proofcast.routing.attributes import parse_attributes
from proofcast.routing.predicate import parse_predicate

CONTACT = make_contact(Ed25519Signer(bytes(32)), "/ip4/127.0.0.1/tcp/1")
INTEREST = Interest(
    CONTACT, compute_key("surf"), 7, (parse_predicate("surf T/price R 1 5"),), False, (CONTACT,), (7,), b"s"
)
EVENT = Event(EventId(CONTACT.public_key, 1, 2), 3, parse_attributes("surf T/price V 4"), b"payload", b"s")
MESSAGES: list[Message] = [
    FindNode(1 << 255),
    Nodes(5, (CONTACT,)),
    Subscribe(INTEREST, None),
    Subscribe(INTEREST, INTEREST),
    Notify(EVENT, 9, None),
    Notify(EVENT, 9, b"somebody"),
]


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        [len(CODECS)],
        [-1, 5],
        [0],
        [0, 5, 5],
        [0, "five"],
        [0, True],
        [0, -5],
        [0, 1 << 256],
        [1, 5, [[b"k", "a"]]],
        [1, 5, "contacts"],
        [2, [[b"k", "a", b"s"], 1, 1, ["surf Q"], False, [], b""], None],
        [2, [[b"k", "a", b"s"], 1, 1, [5], False, [], b""], None],
    ],
)
def test_malformed_message_is_refused(content: object) -> None:
    with pytest.raises(InvalidInput):
        parse_message(cbor2.dumps(content))


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x9f" * 5000, b"\x82\x00", bytes(FRAME_BYTES_MAX + 1)])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_message(data)


@pytest.mark.parametrize("length", [FRAME_BYTES_MAX + 1, 1 << 30])
def test_frame_beyond_the_limit_is_refused_before_it_is_read(length: int) -> None:
    with pytest.raises(InvalidInput):
        FrameReader().feed(encode_varint(length))


@given(st.binary(max_size=200))
def test_hostile_bytes_are_refused_or_mean_something(data: bytes) -> None:
    with suppress(InvalidInput):
        assert encode_message(parse_message(data))


@pytest.mark.parametrize("message", MESSAGES)
def test_message_survives(message: Message) -> None:
    assert parse_message(encode_message(message)) == message


@given(st.lists(st.integers(1, 400), max_size=20))
def test_frames_are_found_however_the_stream_is_cut(cuts: list[int]) -> None:
    stream = b"".join(map(encode_frame, MESSAGES))
    reader, found = FrameReader(), []
    for cut in [*cuts, len(stream)]:
        found += reader.feed(stream[:cut])
        stream = stream[cut:]
    assert found == MESSAGES

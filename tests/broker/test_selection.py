"""Which events a subscription wants: by what is in them, as the topic's owner declared it."""

import pytest

from proofcast.broker.catalogue import Catalogue
from proofcast.broker.selection import Selection, format_selection, parse_selection
from proofcast.errors import InvalidRequest
from proofcast.ethereum.abi import CODEC
from proofcast.ethereum.receipt import Log
from proofcast.event import Event, Finality, Position, Step
from proofcast.onchain.events import PayloadTypeChanged, TopicCreated, compute_type_hash
from proofcast.testing.feed.publishing import PUBLISHER, TOPICS_ADDRESS, encode_bytes

TOPIC = b"\7" * 32
WORD = 32


@pytest.fixture
def catalogue() -> Catalogue:
    """Of one topic, `flights`, whose payloads are a flight and its delay."""
    known = Catalogue(TOPICS_ADDRESS)
    created = Log(
        TOPICS_ADDRESS, (compute_type_hash(TopicCreated), TOPIC), bytes(WORD) + encode_bytes(b"flights", 2 * WORD)
    )
    known.read(created)
    declare(known, "(string flight, uint64 delay)")
    return known


def declare(catalogue: Catalogue, payload_type: str) -> None:
    data = encode_bytes(payload_type.encode(), WORD)
    catalogue.read(Log(TOPICS_ADDRESS, (compute_type_hash(PayloadTypeChanged), TOPIC), data))


def make_event(payload: bytes) -> Event:
    position = Position(1, 5, bytes(32), 0, 0)
    return Event("eip155:1:0x", TOPIC, 1, b"", PUBLISHER, payload, 0, position, "linked", Finality.LATEST, Step.APPLY)


def is_wanted(catalogue: Catalogue, where: str, payload: bytes) -> bool:
    return parse_selection({"where": where}).matches(make_event(payload), catalogue)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("delay", "character"),
        ("delay R 30", "character"),
        ("delay R 30 20", "character"),
        ("x T/" * 600 + "y T", "characters"),
    ],
)
def test_bad_predicate_is_refused(where: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        parse_selection({"where": where})


def test_raw_logs_have_no_fields() -> None:
    with pytest.raises(InvalidRequest, match="`where`"):
        parse_selection({"contract": "0x" + "11" * 20, "where": "delay R 30 *"})


def test_fields_decide(catalogue: Catalogue) -> None:
    late, soon = (CODEC.encode(["string", "uint64"], ["LH454", delay]) for delay in (45, 5))
    assert is_wanted(catalogue, "delay R 30 *", late)
    assert not is_wanted(catalogue, "delay R 30 *", soon)
    assert is_wanted(catalogue, "flights T/flight S LH454 LH455", soon)
    assert not is_wanted(catalogue, "trains T", late)


def test_payload_of_another_form_has_no_fields(catalogue: Catalogue) -> None:
    assert not is_wanted(catalogue, "delay R 0 *", b"no tuple")
    assert is_wanted(catalogue, "flights T", b"no tuple")


@pytest.mark.parametrize("payload_type", ["", "nonsense", "(uint64)"])
def test_topic_without_named_fields(catalogue: Catalogue, payload_type: str) -> None:
    declare(catalogue, payload_type)
    late = CODEC.encode(["string", "uint64"], ["LH454", 45])
    assert not is_wanted(catalogue, "delay R 0 *", late)
    assert is_wanted(catalogue, "flights T", late)


def test_selection_has_one_form() -> None:
    fields = {"topic": "flight*", "publisher": f"0x{PUBLISHER.hex()}", "where": "paid T/delay R 30 *"}
    assert format_selection(parse_selection(fields)) == fields
    assert parse_selection({}) == Selection()
    for topic in ("exchange/colours", f"queue/0x{TOPIC.hex()}", "exchange/"):
        routed = {"topic": topic, "key": "colour-bl*"}
        assert format_selection(parse_selection(routed)) == routed

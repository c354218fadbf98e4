"""A peer's event as it stands on a chain: what is not its publisher's word, and what goes round in circles."""

import base64
from dataclasses import replace

import orjson
import pytest

from proofcast.cloudevents import Delivery, encode_structured
from proofcast.errors import InvalidInput
from proofcast.event import Event as LedgerEvent
from proofcast.event import Finality, Position, Step
from proofcast.gateway.envelope import Envelope, describe_event, encode_envelope
from proofcast.gateway.io.landing import PAYLOAD_BYTES_MAX, choose_payload
from proofcast.gateway.signed import encode_signed, verify_signed
from proofcast.overlay.identity import Ed25519Signer
from proofcast.overlay.records import Event, EventId, sign_event
from proofcast.routing.attributes import parse_attributes

SIGNER = Ed25519Signer(b"s" * 32)
TOPIC, CHAIN = b"t" * 32, 31337
PLACE = Position(CHAIN, 7, b"h" * 32, 0, 0)
CARRIED = LedgerEvent(
    f"eip155:{CHAIN}:0x{'11' * 20}", TOPIC, 1, b"", b"p" * 20, b"{}", 0, PLACE, "linked", Finality.LATEST, Step.APPLY
)


def make_event(payload: bytes) -> Event:
    return sign_event(SIGNER, Event(EventId(SIGNER.public_key, 1 << 60, 7), 5, parse_attributes("surf T"), payload))


def make_row(event: Event) -> dict[str, object]:
    """As the peer's socket gives it."""
    return {
        "event": f"12D3KooW/{event.id.session}/{event.id.sequence}",
        "publisher": event.id.publisher.hex(),
        "attributes": str(event.attributes),
        "born_ms": event.born_ms,
        "payload": base64.b64encode(event.payload).decode(),
        "signature": base64.b64encode(event.signature).decode(),
    }


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"peer": "0x12"}', b"\xff"])
def test_what_is_no_event_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="no event of a peer"):
        verify_signed(data)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("peer", f"0x{Ed25519Signer(b'x' * 32).public_key.hex()}"),
        ("peer", "0x12"),
        ("session", "1"),
        ("sequence", "8"),
        ("born_ms", "6"),
        ("attributes", "ski T"),
        ("payload", "bGllcw=="),
    ],
)
def test_changed_event_is_refused(name: str, value: str) -> None:
    found = orjson.loads(encode_signed(make_event(b"waves")))
    with pytest.raises(InvalidInput, match="signature is not that of peer"):
        verify_signed(orjson.dumps(found | {name: value}))


def test_event_that_came_out_of_the_topic_is_passed_over() -> None:
    said: list[str] = []
    round_trip = make_event(encode_envelope(Envelope(encode_structured(Delivery(CARRIED, "")), b"", ())))
    assert choose_payload(make_row(round_trip), CHAIN, TOPIC, said.append) is None
    assert "came out of this topic" in said[0]
    assert choose_payload(make_row(round_trip), CHAIN, b"u" * 32, said.append) is not None
    assert choose_payload(make_row(round_trip), 1, TOPIC, said.append) is not None


def test_event_too_large_for_a_chain_is_passed_over() -> None:
    said: list[str] = []
    assert choose_payload(make_row(make_event(bytes(PAYLOAD_BYTES_MAX))), CHAIN, TOPIC, said.append) is None
    assert "passed over" in said[0]


def test_event_comes_back_as_it_was_signed() -> None:
    event = make_event(b"waves")
    payload = choose_payload(make_row(event), CHAIN, TOPIC, print)
    assert payload is not None
    assert verify_signed(payload) == event


def test_fields_of_a_payload_are_attributes() -> None:
    fields = {"flight": "LH 400", "delay": 45, "is_late": True, "stops": ["FRA"], "gate": None}
    described = describe_event(["flights"], replace(CARRIED, payload=b""), fields)
    assert str(described) == str(parse_attributes("flights T/delay V 45/flight V LH%20400/is_late T"))
    assert len(describe_event(["flights"], CARRIED, {str(n): n for n in range(99)}).items) == 8
    assert str(describe_event(["flights"], CARRIED, [1])) == "flights T"

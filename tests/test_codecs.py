"""What brokers and clients write to each other: cursors, CloudEvents, webhook signatures."""

import base64
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast import webhook
from proofcast.cloudevents import (
    Delivery,
    compute_id,
    encode_binary,
    encode_structured,
    parse_binary,
    parse_structured,
)
from proofcast.cursor import Cursor, encode_cursor, parse_cursor
from proofcast.errors import InvalidInput, InvalidRequest
from proofcast.event import Event, Finality, Position, Step

CURSOR = Cursor(1, 17_686_110, b"\7" * 32, 3, True, 17_686_000, b"\6" * 32)
EVENT = Event(
    f"eip155:1:0x{'ab' * 20}",
    b"\1" * 32,
    7,
    b"\2" * 32,
    b"\3" * 20,
    b"on time",
    1_700_000_000,
    Position(1, 17_686_110, b"\7" * 32, 2, 3),
    "linked",
    Finality.LATEST,
    Step.APPLY,
)
DELIVERY = Delivery(EVENT, encode_cursor(CURSOR))
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
PRIVATE = "whsk_" + base64.b64encode(bytes(range(32))).decode()

numbers = st.integers(0, 2**64 - 1)
hashes = st.binary(min_size=32, max_size=32)


# --- cursors


@pytest.mark.parametrize("text", ["", "x", "!!", "A" * 201, encode_cursor(CURSOR) + "A", encode_cursor(CURSOR)[:-1]])
def test_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is no cursor"):
        parse_cursor(text)


def test_every_changed_character_of_a_cursor_is_refused() -> None:
    text = encode_cursor(CURSOR)
    for place, character in enumerate(text):
        changed = text[:place] + ("A" if character != "A" else "B") + text[place + 1 :]
        with pytest.raises(InvalidRequest):
            parse_cursor(changed)


@given(st.builds(Cursor, numbers, numbers, hashes, st.integers(0, 2**32 - 1), st.booleans(), numbers, hashes))
def test_cursor_is_read_as_it_was_written(cursor: Cursor) -> None:
    assert parse_cursor(encode_cursor(cursor)) == cursor


# --- CloudEvents


@pytest.mark.parametrize(
    ("name", "value"),
    [("specversion", "0.3"), ("type", "other"), ("source", "somewhere"), ("id", "1"), ("topic", "zz"), ("time", "now")],
)
def test_event_with_a_wrong_attribute_is_refused(name: str, value: str) -> None:
    wrong = orjson.dumps(orjson.loads(encode_structured(DELIVERY)) | {name: value})
    with pytest.raises(InvalidInput, match="no event of Proofcast"):
        parse_structured(wrong)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"7", b'{"data_base64": "?"}', b"\xff"])
def test_bytes_that_are_no_event_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="no event of Proofcast"):
        parse_structured(data)


@given(st.binary(), st.integers(1, 3), st.booleans(), st.sampled_from(Step))
def test_both_forms_are_read_as_they_were_written(payload: bytes, turn: int, repeated: bool, step: Step) -> None:
    delivery = Delivery(replace(EVENT, payload=payload, step=step), DELIVERY.cursor, turn, repeated)
    assert parse_structured(encode_structured(delivery)) == delivery
    assert parse_binary(*encode_binary(delivery)) == delivery


def test_attributes_are_as_cloudevents_demands() -> None:
    """Names of lower-case letters and digits, at most twenty; no empty value; integers of 32 bits."""
    for name, value in orjson.loads(encode_structured(DELIVERY)).items():
        assert name == "data_base64" or (name.isalnum() and name.islower() and len(name) <= 20), name
        assert value != ""
        assert not isinstance(value, int) or abs(value) < 2**31


def test_event_identity_names_block_log_and_step() -> None:
    other_block = replace(EVENT, position=replace(EVENT.position, block_hash=b"\0" * 32))
    other_log = replace(EVENT, position=replace(EVENT.position, log_index=4))
    names = [compute_id(event, 1) for event in (EVENT, other_block, other_log, replace(EVENT, step=Step.UNDO))]
    assert len({*names, compute_id(EVENT, 2)}) == 5


# --- webhooks


def test_signature_of_the_standard() -> None:
    """The example that Standard Webhooks gives for its libraries."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    signed = webhook.sign([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed.signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("now_s", [-301, 301])
def test_old_and_early_deliveries_are_refused(now_s: int) -> None:
    signed = webhook.sign([SECRET], "1", 1_000, b"x")
    with pytest.raises(InvalidInput, match="seconds ago"):
        webhook.verify([SECRET], signed, b"x", 1_000 + now_s)


@pytest.mark.parametrize("change", [{"id": "2"}, {"timestamp": "1001"}, {"timestamp": "x"}, {"signature": "v1,AAAA"}])
def test_changed_headers_are_refused(change: dict[str, str]) -> None:
    for key, known in ((SECRET, SECRET), (PRIVATE, webhook.get_public_key(PRIVATE))):
        signed = webhook.sign([key], "1", 1_000, b"x")
        with pytest.raises(InvalidInput):
            webhook.verify([known], replace(signed, **change), b"x", 1_000)


def test_changed_body_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no signature"):
        webhook.verify([SECRET], webhook.sign([SECRET], "1", 1_000, b"x"), b"y", 1_000)


def test_either_key_of_a_rotation_is_accepted() -> None:
    old, new = SECRET, "whsec_" + base64.b64encode(bytes(32)).decode()
    signed = webhook.sign([new, PRIVATE, old], "1", 1_000, b"x")
    for key in (old, new, webhook.get_public_key(PRIVATE)):
        webhook.verify([key], signed, b"x", 1_100)


@pytest.mark.parametrize("key", ["", "whsec_", "whsec_?", "whsk_AAAA", "secret"])
def test_key_that_is_none_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        webhook.sign([key], "1", 1_000, b"x")
    assert len(key) < 7 or key not in str(refused.value)

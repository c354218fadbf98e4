"""Payloads by their fields: types that are none are refused, values encode as a contract's `abi.encode` does."""

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from proofcast.cli.topic.fields import encode_assignments
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.onchain.payload import DEPTH_MAX, PayloadField, decode_fields, encode_fields, parse_payload_type

NO_TYPES = [
    "",
    "()",
    "uint8 x",
    "(uint8)",
    "(uint8 x",
    "(uint8 x))",
    "(uint8 x),(uint8 y)",
    "(uint8 x,)",
    "(uint9 x)",
    "(colour x)",
    "(uint8 x, bool x)",
    "(uint8 1)",
    "((uint8 x y)",
    "(uint8 x)[]",
]
FLIGHT = parse_payload_type("(string flight, uint8 delay, (bool late, bytes2 gate)[] legs)")
GOOD = ["flight=LH454", "delay=30", 'legs=[[true,"0x0102"]]']
BAD_ASSIGNMENTS = [
    (["flight=LH454", "delay=30"], "the field `legs` has no value"),
    ([*GOOD, "x=1"], "the payload has no field `x`"),
    ([*GOOD, "delay=31"], "`delay=31` sets no field"),
    ([*GOOD, "delay"], "`delay` sets no field"),
    (["flight=x", "delay=256", "legs=[]"], "`256` is no `uint8`"),
    (["flight=x", "delay=-1", "legs=[]"], "`-1` is no `uint8`"),
    (["flight=x", "delay=soon", "legs=[]"], "`soon` is no `uint8`"),
    (["flight=x", "delay=1", "legs=2"], r"`2` is no `\(bool,bytes2\)\[\]`"),
    (["flight=x", "delay=1", "legs=[[true]]"], r"`\[True\]` is no `\(bool,bytes2\)`"),
    (["flight=x", "delay=1", 'legs=[[true,"0x0"]]'], "`0x0` is no hexadecimal text"),
    (["flight=x", "delay=1", 'legs=[["maybe","0x01"]]'], "is no `"),
    (["flight=x", "delay=1", "legs=[["], "is no `"),
]


# --- refusals


@pytest.mark.parametrize("text", NO_TYPES)
def test_declared_type_that_is_none(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no tuple of named ABI types") as raised:
        parse_payload_type(text)
    assert raised.value.reason is Reason.MALFORMED


def test_declared_type_that_is_too_deep() -> None:
    """The owner is a stranger: what it wrote must not exhaust our stack."""
    with pytest.raises(InvalidInput, match="is no tuple"):
        parse_payload_type("(" + "(" * 500 + "uint8 x" + " y)" * 500 + " z)")
    deepest = "(" + "(" * DEPTH_MAX + "uint8 x" + ") y" * DEPTH_MAX + ")"
    assert parse_payload_type(deepest)[0].type == "(" * DEPTH_MAX + "uint8" + ")" * DEPTH_MAX


def test_control_characters_of_a_stranger_are_not_shown() -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_payload_type("(\x1b[31m x)")
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize(("assignments", "words"), BAD_ASSIGNMENTS)
def test_bad_assignment(assignments: list[str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as raised:
        encode_assignments(FLIGHT, assignments)
    assert raised.value.hint


def test_payload_of_another_type() -> None:
    with pytest.raises(InvalidInput, match="do not decode as"):
        decode_fields(FLIGHT, b"LH454 is late")


# --- successes


def test_names_within_tuples_are_passed_over() -> None:
    fields = parse_payload_type(" ( uint price, (address who, (bool, bytes b)[2] marks)[] bids ) ")
    assert fields == (
        PayloadField("price", "uint256"),
        PayloadField("bids", "(address,(bool,bytes)[2])[]"),
    )


def test_values_as_a_user_writes_them() -> None:
    fields = parse_payload_type("(int16 celsius, bool frost, address who, bytes32 id, bytes raw, uint8[2] pair)")
    who = "0x" + "12" * 20
    written = ["celsius=-4", "frost=true", f"who={who}", f"id=0x{'ab' * 32}", "raw=0x00ff", "pair=[1,2]"]
    payload = encode_assignments(fields, written)
    types = [field.type for field in fields]
    assert payload == encode(types, [-4, True, who, b"\xab" * 32, b"\x00\xff", [1, 2]])


def test_text_may_hold_an_equals_sign() -> None:
    fields = parse_payload_type("(string formula)")
    assert decode_fields(fields, encode_assignments(fields, ["formula=a=b"])) == {"formula": "a=b"}


@given(st.text(), st.integers(0, 255), st.lists(st.tuples(st.booleans(), st.binary(min_size=2, max_size=2))))
def test_round_trip(flight: str, delay: int, legs: list[tuple[bool, bytes]]) -> None:
    values = {"flight": flight, "delay": delay, "legs": legs}
    payload = encode_fields(FLIGHT, values)
    assert payload == encode(["string", "uint8", "(bool,bytes2)[]"], [flight, delay, legs])
    assert decode_fields(FLIGHT, payload) == values | {"legs": tuple(legs)}

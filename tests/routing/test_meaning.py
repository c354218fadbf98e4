"""Which messages a subscription by routing key gets, against every short binding key one by one."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidRequest
from proofcast.ethereum.keccak import keccak256
from proofcast.routing.automaton import VERSION, compile_expression
from proofcast.routing.key import parse_routing_key
from proofcast.routing.meaning import is_meant, verify_subscription_key
from proofcast.routing.route import encode_expression_key, encode_routing_key

BINDINGS = ["".join(letters) for length in range(1, 9) for letters in product("ab", repeat=length)]
"""Two keys of at most four elements each meet in one of these, or nowhere."""
PATTERNS = st.text("ab*#", min_size=1, max_size=4)


@pytest.mark.parametrize("key", ["", "a..b", "a b", "a|b", ".".join("abcdefghi")])
def test_what_is_no_routing_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match="routing key"):
        verify_subscription_key(key)


@pytest.mark.parametrize(
    "key", [b"", b"\0", b"a_b", b"a..b", b"\xff", bytes([VERSION]), bytes([VERSION, 9, 9]), b"\1" * 500]
)
def test_message_with_another_kind_of_key_is_not_meant(key: bytes) -> None:
    assert not is_meant("a.b", key)
    assert not is_meant("*", key)


@pytest.mark.parametrize(
    ("wanted", "key", "expected"),
    [
        ("colour-blue", "colour-bl*", True),
        ("colour-blue", "*", True),
        ("colour-bl*", "colour-white", False),
        ("colour-####", "colour-b*e", True),
        ("colour", "colour.red.dark", True),
        ("colour.r*", "colour.red.dark", True),
        ("colour.b*", "colour.red.dark", False),
        ("colour.red.dark", "colour.red", False),
    ],
)
def test_keys_meet_part_by_part(wanted: str, key: str, expected: bool) -> None:
    assert is_meant(wanted, encode_routing_key(key)) is expected


def test_key_of_a_topic_is_meant_by_its_text_or_its_digits() -> None:
    key = keccak256(b"LH400")
    assert is_meant("LH400", key)
    assert is_meant(f"0x{key.hex().upper()}", key)
    assert not is_meant("LH*", key)
    assert not is_meant("LH401", key)


@given(PATTERNS, PATTERNS)
def test_two_keys_meet_where_a_binding_key_is_meant_by_both(wanted: str, key: str) -> None:
    both = [parse_routing_key(wanted), parse_routing_key(key)]
    assert is_meant(wanted, key.encode()) is any(all(one.matches(text) for one in both) for text in BINDINGS)


@given(PATTERNS, st.sampled_from(["a", "a|b", "(ab){1,2}", "b?a", "[ab]{3}", "b{2,4}a?"]))
def test_key_meets_an_expression_where_a_binding_key_is_meant_by_both(wanted: str, expression: str) -> None:
    pattern, automaton = parse_routing_key(wanted), compile_expression(expression)
    expected = any(pattern.matches(text) and automaton.accepts(text) for text in BINDINGS)
    assert is_meant(wanted, encode_expression_key(expression)) is expected
    assert is_meant(f"{wanted}.c", encode_expression_key(expression, "c")) is expected

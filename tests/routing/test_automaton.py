"""Regular expressions over keys: refusals, the bytes a contract runs, and Python's own engine as the second opinion."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidInput, InvalidRequest
from proofcast.routing.automaton import BYTES_MAX, Automaton, compile_expression, parse_automaton
from proofcast.routing.key import ALPHABET


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 1),
        ("a||b", 3),
        ("(a", 3),
        ("a)", 2),
        ("a*", 2),
        ("a+", 2),
        ("?a", 1),
        ("a{2", 4),
        ("a{3,2}", 7),
        ("a{0}", 5),
        ("a{1,65}", 8),
        ("a{,2}", 3),
        ("[]", 3),
        ("[b-a]", 6),
        ("[a", 3),
        ("a_b", 2),
        ("(" * 17 + "a", 18),
    ],
)
def test_meaningless_expression_is_refused_at_its_position(text: str, position: int) -> None:
    with pytest.raises(InvalidRequest) as caught:
        compile_expression(text)
    assert caught.value.have == position


@pytest.mark.parametrize("text", ["a" * 257, "(.{64}){64}", "(a?b?c?d?e?f?){50}", ".{0,9}a.{11}"])
def test_expression_too_large_for_a_contract_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        compile_expression(text)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: b"\2" + data[1:],
        lambda data: data[:3] + b"\xff" + data[4:],
        lambda data: data[:-1] + b"\xff",
        lambda data: data[:66] + bytes([data[66] | 1]) + data[67:],
        lambda data: data[:2],
    ],
)
def test_spoilt_bytes_are_refused(spoil: object) -> None:
    data = compile_expression("colou?r-(black|blue)").encode()
    with pytest.raises(InvalidInput):
        parse_automaton(spoil(data))  # type: ignore[operator]


def test_bytes_are_as_documented() -> None:
    """Version, classes, states, class of each character, accepting states, rows."""
    classes = bytes(1 if character == "a" else 0 for character in ALPHABET)
    assert compile_expression("aa?").encode() == (
        bytes([1, 2, 4]) + classes + bytes([0b1100]) + bytes([0, 0, 0, 2, 0, 3, 0, 0])
    )


def test_equal_languages_have_equal_bytes() -> None:
    assert compile_expression("(ab|ac)").encode() == compile_expression("a[b-c]").encode()


atoms = st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", "[a-c0-9]"])
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        inner.map(lambda part: f"({part})?"),
        st.tuples(inner, st.integers(0, 1), st.integers(1, 2)).map(lambda each: f"({each[0]}){{{each[1]},{each[2]}}}"),
    ),
    max_leaves=6,
)


def compile_for_python(text: str) -> re.Pattern[str]:
    """Our expressions mean the same there, but for the characters that are no characters of a key."""
    any_one = "[a-zA-Z0-9-]"
    return re.compile(text.replace("[^a]", "[b-zA-Z0-9-]").replace(".", any_one))


@given(expressions, st.lists(st.text("abc-0", max_size=6), max_size=20))
def test_automaton_equals_python(text: str, keys: list[str]) -> None:
    automaton, expected = compile_expression(text), compile_for_python(text)
    assert len(automaton.encode()) <= BYTES_MAX
    read = parse_automaton(automaton.encode())
    assert read == automaton
    assert [run_bytes(automaton, key) for key in keys] == [expected.fullmatch(key) is not None for key in keys]
    assert [read.accepts(key) for key in keys] == [run_bytes(automaton, key) for key in keys]


def run_bytes(automaton: Automaton, key: str) -> bool:
    """As a contract runs it: nothing but the bytes."""
    data = automaton.encode()
    classes, states, state = data[1], data[2], 1
    table = 66 + (states + 7) // 8
    for character in key:
        state = data[table + state * classes + data[3 + ALPHABET.index(character)]]
    return data[66 + state // 8] >> state % 8 & 1 == 1

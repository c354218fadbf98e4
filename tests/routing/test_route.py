"""Routing keys as the contract takes them, and the sentences that say why one does or does not match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidRequest
from proofcast.routing.automaton import compile_expression
from proofcast.routing.key import Hash, parse_routing_key
from proofcast.routing.route import (
    encode_expression_key,
    encode_routing_key,
    explain_expression,
    explain_key,
    get_rest,
)


@pytest.mark.parametrize("key", ["", "a..b", ".a", "a b", ".".join("abcdefghi")])
def test_malformed_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match="routing key"):
        encode_routing_key(key)
    with pytest.raises(InvalidRequest, match="routing key"):
        encode_expression_key("a", key)


@pytest.mark.parametrize(
    ("key", "binding", "hash_means", "expected"),
    [
        ("colour-blue", "colour-blue", Hash.ONE, "`colour-blue` means `colour-blue`: they are identical"),
        ("colour-bl*.rest", "colour-blue", Hash.ONE, "means `colour-blue`: `*` reads one or more characters"),
        ("colour-#####", "colour-blue", Hash.ONE, "`colour-blue` ends where `colour-#####` wants more characters"),
        ("colour-#####", "colour-blue", Hash.NONE_OR_ONE, "means `colour-blue`: `#` reads none or one"),
        ("colour-bl*", "colour-white", Hash.ONE, "cannot read the `w` at character 8 of `colour-white`"),
        ("colour-bl", "colour-blue", Hash.ONE, "cannot read the `u` at character 10"),
        ("b*", "a", Hash.ONE, "cannot read the `a` at character 1"),
    ],
)
def test_explanation_names_the_character(key: str, binding: str, hash_means: Hash, expected: str) -> None:
    assert expected in explain_key(key, binding, hash_means)


def test_expression_is_explained() -> None:
    assert explain_expression("a|b", "b") == "the expression `a|b` means `b`"
    assert explain_expression("a|b", "c") == "the expression `a|b` does not mean `c`"


@given(st.text("ab*#", min_size=1, max_size=6), st.text("ab", min_size=1, max_size=6), st.sampled_from(Hash))
def test_explanation_agrees_with_matching(key: str, binding: str, hash_means: Hash) -> None:
    says_yes = f"`{key}` means `{binding}`" in explain_key(key, binding, hash_means)
    assert says_yes is parse_routing_key(key, hash_means).matches(binding)


@given(st.sampled_from(["a", "a|b", "[a-f]{1,9}", "x?y-z"]), st.sampled_from([None, "b", "b.c*", "#.#"]))
def test_rest_is_behind_the_automaton(expression: str, rest: str | None) -> None:
    key = encode_expression_key(expression, rest)
    assert key.startswith(compile_expression(expression).encode())
    assert get_rest(key) == (rest or "").encode()

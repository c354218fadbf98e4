"""Policy and terms: bounds refused in one sentence, words that round-trip, and the contract's own opinion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.onchain import lens, topics
from proofcast.onchain.abi import build_from
from proofcast.onchain.io.reading import read
from proofcast.onchain.policy import (
    POLICY_FIELDS,
    SET_BIT,
    TERMS_FIELDS,
    Access,
    Field,
    Policy,
    Terms,
    parse_policy,
    parse_terms,
)
from proofcast.onchain.request import Request, ask
from proofcast.testing.onchain import DEPOSIT_WEI, Playground

NUMBERS = POLICY_FIELDS[:-2]
NO_POLICIES = [
    1,
    Policy().pack() | 1 << 221,
    Policy().pack() & ~(1 << SET_BIT),
    Policy().pack() | 3 << 216,
    Policy().pack() | 3 << 218,
    1 << SET_BIT,
    Policy().pack() + (8_000_001 - 200_000),
    Policy().pack() + (10_000_001 - 10_000 << 56),
]
"""Stray bits, the set bit missing, an access that is none, a field beyond its bound."""
policies = st.tuples(
    *(st.integers(field.least, field.most) for field in NUMBERS), st.sampled_from(Access), st.sampled_from(Access)
).map(lambda values: build_from(Policy, values))
terms = st.tuples(*(st.integers(field.least, field.most) for field in TERMS_FIELDS)).map(
    lambda values: build_from(Terms, values)
)


@pytest.mark.parametrize("field", [f for f in NUMBERS if f.least > 0], ids=lambda field: field.name)
def test_too_little_is_refused(field: Field) -> None:
    with pytest.raises(InvalidRequest, match=f"`{field.name}` is `{field.least - 1}` but must lie between") as raised:
        Policy(**{field.name: field.least - 1})
    assert (raised.value.reason, raised.value.need) == (Reason.BAD_ARGUMENT, field.least)


@pytest.mark.parametrize("field", NUMBERS, ids=lambda field: field.name)
def test_too_much_is_refused(field: Field) -> None:
    with pytest.raises(InvalidRequest, match=f"`{field.name}` is `{field.most + 1}`") as raised:
        Policy(**{field.name: field.most + 1})
    assert raised.value.need == field.most


@pytest.mark.parametrize("field", TERMS_FIELDS, ids=lambda field: field.name)
@pytest.mark.parametrize("beyond", [-1, 1])
def test_terms_out_of_bounds_are_refused(field: Field, beyond: int) -> None:
    values = {other.name: other.least for other in TERMS_FIELDS}
    values[field.name] = field.most + 1 if beyond > 0 else -1
    with pytest.raises(InvalidRequest, match=f"`{field.name}`"):
        Terms(**values)


@pytest.mark.parametrize("word", NO_POLICIES)
def test_word_that_is_no_policy_is_refused(word: int) -> None:
    with pytest.raises(InvalidInput, match="is no policy that the contract accepts"):
        parse_policy(word)


@pytest.mark.parametrize("bit", [55, 95, 96])
def test_word_that_is_no_terms_is_refused(bit: int) -> None:
    with pytest.raises(InvalidInput, match="is no terms"):
        parse_terms(1 << bit)


@given(policies)
def test_policy_round_trip(policy: Policy) -> None:
    assert parse_policy(policy.pack()) == policy


@given(terms)
def test_terms_round_trip(accepted: Terms) -> None:
    assert parse_terms(accepted.pack()) == accepted


def test_zero_is_the_default_policy() -> None:
    assert parse_policy(0) == Policy()


@pytest.mark.needs("anvil")
@pytest.mark.parametrize("word", NO_POLICIES)
def test_contract_refuses_the_same_words(playground: Playground, word: int) -> None:
    data = bytearray(topics.create("x", Policy()).data)
    data[4 : 4 + 32] = word.to_bytes(32)
    with pytest.raises(InvalidRequest, match="the contract refuses the policy"):
        playground.send(Request(playground.topics, bytes(data)))


@pytest.mark.needs("anvil")
def test_contract_has_the_same_default(playground: Playground) -> None:
    playground.send(ask(playground.topics, topics.create("x")))
    topic = topics.compute_topic(playground.open_sender().address, "x")
    assert read(playground.rpc, playground.lens, lens.get_topic(topic)).policy == Policy()


@pytest.mark.needs("anvil")
@pytest.mark.parametrize("extreme", ["least", "most"])
def test_contract_accepts_the_bounds_and_stores_them(playground: Playground, extreme: str) -> None:
    bounds = {field.name: getattr(field, extreme) for field in NUMBERS}
    access = Access.LISTED if extreme == "least" else Access.OPEN
    policy = Policy(**bounds, publishing=access, subscribing=Access.OPEN)
    playground.send(ask(playground.topics, topics.create("x", policy)))
    topic = topics.compute_topic(playground.open_sender().address, "x")
    assert read(playground.rpc, playground.lens, lens.get_topic(topic)).policy == policy


@pytest.mark.needs("anvil")
def test_contract_stores_terms_as_packed(playground: Playground) -> None:
    playground.send(ask(playground.topics, topics.create("x")))
    topic = topics.compute_topic(playground.open_sender().address, "x")
    accepted = Terms(callback_gas=54_321, max_price_mwei=123_456, max_share_gwei=987_654_321)
    index = playground.join(playground.create("Noop"), topic, DEPOSIT_WEI, accepted)
    assert read(playground.rpc, playground.lens, lens.get_subscription(topic, index)).terms == accepted

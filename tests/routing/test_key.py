"""Binding keys, routing keys and their index; the traps D3, D4 and D6 of the reference, and naive definitions."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidRequest
from proofcast.routing.bindings import BindingIndex
from proofcast.routing.key import (
    ALPHABET,
    Delivery,
    Hash,
    parse_routing_key,
    split_hierarchical_key,
    verify_binding_key,
)

COLOURS = ["colour-black", "colour-blue", "colour-white"]


# --- refusals


@pytest.mark.parametrize("key", ["", "a b", "colour_x", "é", "a.b", "*", "a#", "a\n", "x" * 129])
def test_invalid_binding_key_is_refused(key: str) -> None:
    """D6: the reference bound such keys, which nothing could address."""
    with pytest.raises(InvalidRequest, match="binding key"):
        BindingIndex().add(key, 1)


def test_refusal_names_the_character() -> None:
    with pytest.raises(InvalidRequest, match="has a `_` at character 7"):
        verify_binding_key("colour_x")


@pytest.mark.parametrize("key", ["", "a b", "a..b", "x" * 129, ".".join("abcdefghi")])
def test_invalid_routing_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match="routing key"):
        split_hierarchical_key(key)


def test_binding_twice_and_removing_unknown_are_refused() -> None:
    index = BindingIndex()
    index.add("a", 1)
    with pytest.raises(InvalidRequest, match="`1` is bound by `a` already"):
        index.add("a", 1)
    with pytest.raises(InvalidRequest, match="`2` is not bound by `a`"):
        index.remove("a", 2)


# --- the paper's examples


@pytest.mark.parametrize(
    ("key", "found", "delivery"),
    [
        ("colour-black", ["colour-black"], Delivery.DIRECT),
        ("colour-bl", [], Delivery.DIRECT),
        ("*", COLOURS, Delivery.FANOUT),
        ("colour-bl*", ["colour-black", "colour-blue"], Delivery.TOPIC),
        ("colour-black*", [], Delivery.TOPIC),
        ("colour-####", ["colour-blue"], Delivery.TOPIC),
        ("colour-#####", ["colour-black", "colour-white"], Delivery.TOPIC),
        ("*-*k", ["colour-black"], Delivery.TOPIC),
        ("#olour-*l*e", ["colour-blue"], Delivery.TOPIC),
        ("**", COLOURS, Delivery.TOPIC),
        ("*e#", [], Delivery.TOPIC),
    ],
)
def test_colours(key: str, found: list[str], delivery: Delivery) -> None:
    """D3, D4: the reference delivered twice, ignored what follows a `*`, and matched by prefix."""
    index = BindingIndex()
    for queue, binding in enumerate(COLOURS):
        index.add(binding, queue)
        index.add(f"other-{binding}"[:40], 7)
    only = [each for each in index.find_keys(parse_routing_key(key)) if each in COLOURS]
    assert sorted(only) == found
    assert parse_routing_key(key).delivery is delivery


def test_queue_is_found_once() -> None:
    index = BindingIndex()
    for binding in COLOURS:
        index.add(binding, 1)
    assert index.find("colour-bl*") == {1}
    assert len(index) == 3


def test_hash_as_none_or_one() -> None:
    """Footnote 1: an exchange may accept `no-char` for `#`."""
    index = BindingIndex(Hash.NONE_OR_ONE)
    for queue, binding in enumerate(COLOURS):
        index.add(binding, queue)
    assert index.find("colour-#####") == {0, 1, 2}
    assert index.find("#colour-#blue#") == {1}


@pytest.mark.parametrize(("key", "expected"), [("a", ("a", None)), ("a.b.c", ("a", "b.c")), ("a*.#.*", ("a*", "#.*"))])
def test_hierarchical_key(key: str, expected: tuple[str, str | None]) -> None:
    assert split_hierarchical_key(key) == expected


# --- against naive definitions

bindings = st.text("ab-1", min_size=1, max_size=8)
hashes = st.sampled_from(Hash)
routing_keys = st.text("ab-*#", min_size=1, max_size=8)


def matches_naively(key: str, binding: str, hash_means: Hash) -> bool:
    """Every reading in turn, as the rules say it."""
    if not key:
        return not binding
    head, rest = key[0], key[1:]
    if head == "*":
        return any(matches_naively(rest, binding[count:], hash_means) for count in range(1, len(binding) + 1))
    if head == "#":
        skips = hash_means is Hash.NONE_OR_ONE and matches_naively(rest, binding, hash_means)
        return skips or (binding != "" and matches_naively(rest, binding[1:], hash_means))
    return binding[:1] == head and matches_naively(rest, binding[1:], hash_means)


@given(routing_keys, bindings, hashes)
def test_matching_equals_definition(key: str, binding: str, hash_means: Hash) -> None:
    assert parse_routing_key(key, hash_means).matches(binding) is matches_naively(key, binding, hash_means)


@given(
    st.lists(bindings, unique=True, max_size=30), st.lists(routing_keys, max_size=5), st.sampled_from(Hash), st.data()
)
def test_index_equals_scan(keys: list[str], asked: list[str], hash_means: Hash, data: st.DataObject) -> None:
    index = BindingIndex(hash_means)
    for queue, key in enumerate(keys):
        index.add(key, queue)
    for key in data.draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []:
        index.remove(key, keys.index(key))
        keys = [other if other != key else "" for other in keys]
    for key in asked:
        wanted = parse_routing_key(key, hash_means)
        assert index.find(key) == {queue for queue, each in enumerate(keys) if each and wanted.matches(each)}


def test_removed_bindings_leave_the_lists() -> None:
    index = BindingIndex()
    for number in range(5000):
        index.add(f"key-{number}", number)
    for number in range(4999):
        index.remove(f"key-{number}", number)
    assert index.find("key-*") == {4999}
    assert len(index._keys) < 2000


def test_many_wildcards_are_matched_in_one_pass() -> None:
    """A matcher that tries readings one after the other would need 2^60 steps here."""
    assert not parse_routing_key("*a" * 60 + "b").matches("a" * 128)


def test_wildcards_look_at_few_of_many_bindings() -> None:
    dice = random.Random(1)
    index = BindingIndex()
    for queue in range(5_000):
        index.add("".join(dice.choices(ALPHABET, k=12)), queue)
    for key in ("abc*", "*xyz", "*-0A*", "##bcd#*", "a*", "*#z"):
        assert len(list(index.find_candidates(parse_routing_key(key)))) < 150, key
    expression = re.compile("[^*]+-0A[^*]+")
    assert sorted(index.find_keys(parse_routing_key("*-0A*"))) == sorted(filter(expression.fullmatch, index._queues))

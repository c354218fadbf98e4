"""Exchanges and queues: calls, events and errors against the ABI; then the contract, with which Python agrees."""

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st
from web3 import Web3

from proofcast.errors import InvalidRequest, ProofcastError, Reason, Unavailable
from proofcast.onchain import exchanges, queues
from proofcast.onchain.abi import Call, compute_selector, split_types
from proofcast.onchain.exchange_events import (
    EXCHANGE_LOG_TYPES,
    Handed,
    Held,
    find_exchange_event,
)
from proofcast.onchain.exchange_refusals import EXCHANGES_REFUSALS
from proofcast.onchain.exchanges import Exchange, Status
from proofcast.onchain.io.artefacts import get_exchanges, load_artefact
from proofcast.onchain.io.exchanges import (
    deploy_exchanges,
    find_events,
    find_next,
    find_oldest,
    get_event,
    list_bindings,
    list_held,
)
from proofcast.onchain.io.reading import read, read_all
from proofcast.onchain.outcome import Outcome
from proofcast.onchain.queues import Condition, Header, Place, Queue, QueueTerms, compute_message_hash
from proofcast.onchain.refusal import Refusal
from proofcast.onchain.reverts import SUBSCRIBER_REFUSALS, TOPICS_REFUSALS, decode_revert
from proofcast.onchain.routed import ROUTED, Routed, find_routed
from proofcast.routing.automaton import compile_expression
from proofcast.routing.key import ALPHABET, Hash, parse_routing_key, split_hierarchical_key, verify_binding_key
from proofcast.routing.route import encode_expression_key, get_rest
from proofcast.testing.onchain import OPEN, Switchboard, open_switchboard, run_playground

A, X, Q = b"\xaa" * 20, b"\x11" * 32, b"\x22" * 32
TERMS = QueueTerms(True, False, True, True, Condition.ABOVE, Q, -5, 1, 2, 3, 4, 5, X)
HEADER = Header(X, 1, A, 2, 3, 4, 5, 6)
COLOURS = ["colour-black", "colour-blue", "colour-white"]
SEED = 20_170_610

CALLS: dict[str, tuple[Call[Any], list[object]]] = {
    "createExchange": (
        exchanges.create_exchange("name", is_open=True, hash_may_be_nothing=True, fee_wei=7),
        ["name", True, True, 7],
    ),
    "requestPublishing": (exchanges.request_publishing(X), [X]),
    "approvePublisher": (exchanges.approve_publisher(X, A), [X, A]),
    "removePublisher": (exchanges.remove_publisher(X, A), [X, A]),
    "requestBinding": (exchanges.request_binding(X, Q, "key"), [X, Q, "key"]),
    "approveBinding": (exchanges.approve_binding(X, Q, "key"), [X, Q, "key"]),
    "removeBinding": (exchanges.remove_binding(X, Q, "key"), [X, Q, "key"]),
    "publish": (exchanges.publish(X, b"key", b"payload", 9), [X, b"key", b"payload"]),
    "collect": (exchanges.collect(A), [A]),
    "collectExchange": (exchanges.collect_exchange(X, A), [X, A]),
    "getExchange": (exchanges.get_exchange(X), [X]),
    "getBinding": (exchanges.get_binding(X, 3), [X, 3]),
    "getPublisherStatus": (exchanges.get_publisher_status(X, A), [X, A]),
    "getBindingStatus": (exchanges.get_binding_status(X, Q, "key"), [X, Q, "key"]),
    "getCredit": (exchanges.get_credit(A), [A]),
    "isMatch": (exchanges.is_match(b"k*", "key", hash_may_be_nothing=True), [b"k*", "key", True]),
    "idOf": (exchanges.id_of(A, "name"), [A, "name"]),
    "topics": (exchanges.get_topics(), []),
    "FULL_GAS": (exchanges.get_full_gas(), []),
    "HELD_MAX": (exchanges.get_held_max(), []),
    "createQueue": (queues.create_queue("name", TERMS), ["name", dataclasses.astuple(TERMS)]),
    "subscribe": (queues.subscribe(Q), [Q]),
    "approveSubscriber": (queues.approve_subscriber(Q, A), [Q, A]),
    "removeSubscriber": (queues.remove_subscriber(Q, A), [Q, A]),
    "tidy": (queues.tidy(Q, 3), [Q, 3]),
    "release": (queues.release(Q, HEADER, b"k", b"p", A), [Q, dataclasses.astuple(HEADER), b"k", b"p", A]),
    "expire": (queues.expire(Q, HEADER, b"k", b"p", A), [Q, dataclasses.astuple(HEADER), b"k", b"p", A]),
    "fund": (queues.fund(Q, 9), [Q]),
    "collectQueue": (queues.collect_queue(Q, A), [Q, A]),
    "getQueue": (queues.get_queue(Q), [Q]),
    "getSubscriber": (queues.get_subscriber(Q, 3), [Q, 3]),
    "getSubscriberStatus": (queues.get_subscriber_status(Q, A), [Q, A]),
    "isReleasable": (queues.is_releasable(Q, HEADER), [Q, dataclasses.astuple(HEADER)]),
}
RESULTS: dict[str, tuple[list[object], object]] = {
    "getExchange": ([(A, True, False, 1, 2, 3, 4)], Exchange(A, True, False, 1, 2, 3, 4)),
    "getBinding": ([Q, "key"], exchanges.Binding(Q, "key")),
    "getSubscriber": ([A, 1, 2], Place(A, 1, 2)),
    "getSubscriberStatus": ([2], Status.APPROVED),
    "getQueue": (
        [(A, dataclasses.astuple(TERMS), 1, 2, 3, 4, True, False, 5, 6, X)],
        Queue(A, TERMS, 1, 2, 3, 4, True, False, 5, 6, X),
    ),
}


def list_abi(kind: str, name: str = "Exchanges") -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in load_artefact(name).abi if entry["type"] == kind}


def get_types(parameters: list[dict[str, Any]]) -> str:
    types = [
        get_types(each["components"]) + each["type"].removeprefix("tuple")
        if each["type"].startswith("tuple")
        else each["type"]
        for each in parameters
    ]
    return f"({','.join(types)})"


# --- against the ABI


def test_every_entry_point_has_a_call() -> None:
    assert CALLS.keys() == list_abi("function").keys()


@pytest.mark.parametrize("name", CALLS)
def test_call_is_what_web3_encodes(name: str) -> None:
    call, arguments = CALLS[name]
    contract = Web3().eth.contract(abi=load_artefact("Exchanges").abi)
    assert "0x" + call.data.hex() == contract.encode_abi(name, arguments)


@pytest.mark.parametrize("name", RESULTS)
def test_result_is_read_as_the_abi_declares_it(name: str) -> None:
    values, expected = RESULTS[name]
    types = split_types(get_types(list_abi("function")[name]["outputs"]))
    assert CALLS[name][0].read(encode(types, values)) == expected


def test_every_event_is_known() -> None:
    declared = {entry["name"] + get_types(entry["inputs"]) for entry in list_abi("event").values()}
    assert {log_type.signature for log_type in EXCHANGE_LOG_TYPES} == declared
    assert find_exchange_event([bytes(32)], b"") is None


def test_every_error_is_explained() -> None:
    contracts = ("Exchanges", "PubSub", "Gauge")
    declared = {
        entry["name"] + get_types(entry["inputs"]) for name in contracts for entry in list_abi("error", name).values()
    }
    elsewhere = {refusal.signature for refusal in (*TOPICS_REFUSALS, *SUBSCRIBER_REFUSALS)}
    assert declared - elsewhere == {refusal.signature for refusal in EXCHANGES_REFUSALS}


@pytest.mark.parametrize("refusal", EXCHANGES_REFUSALS, ids=lambda refusal: refusal.signature)
def test_error_names_its_values(refusal: Refusal) -> None:
    kinds = split_types(refusal.signature[refusal.signature.index("(") :])
    values = [{"bytes32": Q, "address": A, "uint8": 1}.get(kind, 1000 + i) for i, kind in enumerate(kinds)]
    raised = decode_revert(compute_selector(refusal.signature) + encode(kinds, values))
    assert isinstance(raised, ProofcastError)
    assert (raised.reason, type(raised)) == (refusal.reason, refusal.kind)
    for position in (refusal.have, refusal.need):
        value = None if position is None else values[position]
        assert value is None or (value.hex() if isinstance(value, bytes) else str(value)) in str(raised).lower()


@pytest.mark.parametrize(
    ("key", "rest"),
    [
        (b"a", b""),
        (b"a.b.c", b"b.c"),
        (encode_expression_key("a|b"), b""),
        (encode_expression_key("a{2,60}", "b.c"), b"b.c"),
    ],
)
def test_rest_of_a_key(key: bytes, rest: bytes) -> None:
    assert get_rest(key) == rest


@given(st.binary(max_size=70), st.binary(max_size=70), st.integers(0, 447), st.integers(0, 255))
def test_message_is_read_quickly_or_not_at_all(key: bytes, payload: bytes, place: int, change: int) -> None:
    """The quick reader takes the contract's own form, and nothing that the decoder reads otherwise."""
    topics = (ROUTED, X, (7).to_bytes(32), bytes(12) + A)
    data = encode(["uint256", "uint256", "bytes", "bytes"], [5, 2, key, payload])
    assert find_routed(topics, data) == Routed(X, 7, A, 5, 2, key, payload) == find_exchange_event(topics, data)
    changed = bytearray(data)
    changed[place % len(data)] ^= change
    quick = find_routed(topics, bytes(changed))
    assert quick is None or quick == find_exchange_event(topics, bytes(changed))
    assert find_routed(topics, data[:-1]) is None
    assert find_routed(topics[:3], data) is None


# --- on a chain


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switchboard]:
    folder: Path = tmp_path_factory.mktemp("exchanges")
    with run_playground(folder) as playground:
        world = open_switchboard(playground)
        assert deploy_exchanges(playground.open_sender(), playground.topics) == world.contract
        yield world


@pytest.mark.needs("anvil")
def test_refusals_of_the_contract_are_explained(world: Switchboard) -> None:
    assert world.contract == get_exchanges(world.playground.topics)
    with pytest.raises(InvalidRequest, match="may not publish in the exchange") as raised:
        world.send(exchanges.publish(world.exchange, b"key", b""), account=1)
    assert raised.value.reason is Reason.NOT_ALLOWED
    with pytest.raises(InvalidRequest, match="not well formed at byte `2`"):
        world.send(exchanges.publish(world.exchange, b"a..b", b""))
    empty = world.add_queue("refusals")
    with pytest.raises(InvalidRequest, match="holds no message"):
        find_next(world.rpc, world.contract, empty)


def draw_key(dice: random.Random, alphabet: str) -> str:
    return "".join(dice.choices(alphabet, k=dice.randint(1, 9)))


@pytest.mark.needs("anvil")
def test_python_and_contract_match_the_same_keys(world: Switchboard) -> None:
    """Random routing keys against random binding keys, both readings of `#`; then regular expressions."""
    dice = random.Random(SEED)
    calls, expected = [], []
    for _ in range(600):
        key, binding = draw_key(dice, "ab-Z9**##"), draw_key(dice, "ab-Z9")
        hash_means = dice.choice(list(Hash))
        calls.append(exchanges.is_match(key.encode(), binding, hash_may_be_nothing=hash_means is Hash.NONE_OR_ONE))
        expected.append((key, binding, parse_routing_key(key, hash_means).matches(binding)))
    for expression in ("a?b{1,3}", "[^a]-.(b|Z9)?", "(a|b|-){2,4}", ".{9}", "[0-9A-Z]{1,9}"):
        automaton = compile_expression(expression)
        for _ in range(40):
            binding = draw_key(dice, dice.choice(["ab-Z9", ALPHABET]))
            calls.append(exchanges.is_match(automaton.encode(), binding))
            expected.append((expression, binding, automaton.accepts(binding)))
    answers = read_all(world.rpc, world.contract, calls)
    found = [(*question[:2], answer) for question, answer in zip(expected, answers, strict=True)]
    assert found == expected, f"seed {SEED}"
    assert 50 < sum(answers) < len(answers) - 50, "the keys are no test"


def is_accepted(world: Switchboard, key: bytes, binding: str) -> bool:
    try:
        read(world.rpc, world.contract, exchanges.is_match(key, binding))
    except InvalidRequest as refused:
        if refused.reason is not Reason.BAD_KEY:
            raise
        return False
    return True


def is_valid(key: str, binding: str) -> bool:
    try:
        split_hierarchical_key(key)
        verify_binding_key(binding)
    except InvalidRequest:
        return False
    return True


@pytest.mark.needs("anvil")
def test_python_and_contract_refuse_the_same_keys(world: Switchboard) -> None:
    dice = random.Random(SEED)
    pairs = [(draw_key(dice, "aaaaaZ9-..*#_"), draw_key(dice, "aaaaaaaaZZ99--_.")) for _ in range(120)]
    pairs += [
        ("", "a"),
        ("a", ""),
        ("x" * 128, "x" * 128),
        ("x" * 129, "a"),
        ("a", "x" * 129),
        ("a.b.c.d.e.f.g.h", "a"),
    ]
    answers = [is_accepted(world, key.encode(), binding) for key, binding in pairs]
    assert answers == [is_valid(*pair) for pair in pairs], f"seed {SEED}"
    assert 15 < sum(answers) < len(answers) - 15, "the keys are no test"


@pytest.mark.needs("anvil")
def test_colours_reach_the_queues_that_python_names(world: Switchboard) -> None:
    bound = {world.add_queue(colour): colour for colour in COLOURS}
    for queue in bound:
        world.add_listener(queue)
    for key in ("colour-black", "*", "colour-bl*", "colour-####", "colour-#####", "*-*k", "white"):
        receipt = world.publish(key)
        reached = {bound[page.queue] for page in find_events(receipt, world.contract, Handed) if page.queue in bound}
        assert reached == {colour for colour in COLOURS if parse_routing_key(key).matches(colour)}, key
        pages = [page for page in find_events(receipt, world.contract, Handed) if page.queue in bound]
        assert all(page.outcomes == (Outcome.DELIVERED,) for page in pages)
        assert get_event(receipt, world.contract, Routed).key == key.encode()
    listed = {(binding.queue, binding.key) for binding in list_bindings(world.rpc, world.contract, world.exchange)}
    assert set(bound.items()) <= listed


@pytest.mark.needs("anvil")
def test_held_message_is_found_in_the_logs_and_released(world: Switchboard) -> None:
    dead = world.add_queue("dead")
    terms = dataclasses.replace(
        OPEN, condition=Condition.TIME, delay_s=100, lifetime_s=1000, lifo=True, dead_letter=dead
    )
    queue = world.add_queue("later", terms)
    listener = world.add_listener(queue)
    held = get_event(world.publish("later.b.c", 7), world.contract, Held)
    world.send(exchanges.publish(world.exchange, encode_expression_key("later|never", "x"), b"newer"))
    messages = list_held(world.rpc, world.contract, queue)
    assert [(each.key, each.payload) for each in messages] == [(b"b.c", b"payload"), (b"x", b"newer")]
    assert messages[0].header == held.header
    assert messages[1].hash == compute_message_hash(messages[1].header, b"x", b"newer")
    with pytest.raises(Unavailable, match="still waits for its condition"):
        world.settle(queue)

    world.rpc.call("evm_increaseTime", 100)
    world.rpc.call("evm_mine")
    page = get_event(world.settle(queue), world.contract, Handed)
    assert (page.number, page.outcomes, page.remaining) == (2, (Outcome.DELIVERED,), 0)

    oldest = find_oldest(world.rpc, world.contract, queue)
    expire = queues.expire(queue, oldest.header, oldest.key, oldest.payload, A)
    with pytest.raises(Unavailable, match="does not expire before"):
        world.send(expire)
    world.rpc.call("evm_increaseTime", 1000)
    world.rpc.call("evm_mine")
    moved = get_event(world.send(expire), world.contract, Handed)
    assert (moved.queue, moved.outcomes) == (dead, ())
    assert list_held(world.rpc, world.contract, queue) == []
    owed = read_all(world.rpc, world.contract, [exchanges.get_credit(each) for each in (listener, A)])
    assert owed == [0, 0], "what expired went back to its publisher"
    state = read(world.rpc, world.contract, queues.get_queue(queue))
    assert (state.held, state.held_value_wei, state.terms) == (0, 0, terms)

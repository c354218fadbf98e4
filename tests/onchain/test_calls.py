"""Our calls, events and errors against the compiled contract's ABI, with web3.py as the second opinion."""

import dataclasses
from typing import Any

import pytest
from eth_abi import encode
from hypothesis import given
from hypothesis import strategies as st
from web3 import Web3
from web3.contract import Contract

from proofcast.errors import InvalidInput, ProofcastError, Reason
from proofcast.onchain import lens, signed, subscriber, topics
from proofcast.onchain.abi import Call, compute_selector, decode_values, split_types
from proofcast.onchain.events import LOG_TYPES, Delivered, compute_type_hash, find_event
from proofcast.onchain.io.artefacts import load_artefact
from proofcast.onchain.lens import compute_index
from proofcast.onchain.outcome import Outcome
from proofcast.onchain.policy import Access, Policy, Terms
from proofcast.onchain.refusal import Refusal
from proofcast.onchain.reverts import (
    LENS_REFUSALS,
    SIGNED_PUBLISHER_REFUSALS,
    SUBSCRIBER_REFUSALS,
    TOPICS_REFUSALS,
    decode_revert,
)

A, B, TOPIC, KEY = b"\xaa" * 20, b"\xbb" * 20, b"\x11" * 32, b"\x22" * 32
POLICY = Policy(callback_gas=50_000, reward_gwei=7, publishing=Access.OPEN)
TERMS = Terms(callback_gas=30_000, max_price_mwei=100_000, max_share_gwei=5_000)
PUBLICATION = signed.Publication(31337, B, TOPIC, 3, b"payload", 99, KEY, A)

CALLS: dict[str, tuple[Call[Any], list[object]]] = {
    "create": (topics.create("name", POLICY), [POLICY.pack(), "name"]),
    "setPayloadType": (topics.set_payload_type(TOPIC, "(uint8 x)"), [TOPIC, "(uint8 x)"]),
    "setPolicy": (topics.set_policy(TOPIC, POLICY), [TOPIC, POLICY.pack()]),
    "setRoles": (topics.set_roles(TOPIC, A, 3), [TOPIC, A, 3]),
    "subscribe": (topics.subscribe(TOPIC, TERMS, 10**9, 4), [TOPIC, TERMS.pack(), 4]),
    "fund": (topics.fund(TOPIC, 4, 10**9), [TOPIC, 4]),
    "withdraw": (topics.withdraw(TOPIC, 4, 5, A), [TOPIC, 4, 5, A]),
    "unsubscribe": (topics.unsubscribe(TOPIC, 4, A), [TOPIC, 4, A]),
    "publish": (topics.publish(TOPIC, b"p", key=KEY, expected=2, payee=A), [TOPIC, KEY, 2, A, b"p"]),
    "deliver": (topics.deliver(TOPIC, KEY, b"p", A), [TOPIC, KEY, A, b"p"]),
    "seal": (topics.seal(TOPIC), [TOPIC]),
    "collect": (topics.collect(A), [A]),
    "collectTopic": (topics.collect_topic(TOPIC, A), [TOPIC, A]),
    "topicOf": (topics.topic_of(A, "name"), [A, "name"]),
    "getCredit": (topics.get_credit(A), [A]),
    "extsload": (topics.extsload(KEY), [KEY]),
}
LENS_CALLS: dict[str, tuple[Call[Any], list[object]]] = {
    "getTopic": (lens.get_topic(TOPIC), [TOPIC]),
    "getPending": (lens.get_pending(TOPIC), [TOPIC]),
    "getRoles": (lens.get_roles(TOPIC, A), [TOPIC, A]),
    "getSubscription": (lens.get_subscription(TOPIC, 4), [TOPIC, 4]),
    "findHole": (lens.find_hole(TOPIC), [TOPIC]),
    "indexAt": (lens.index_at(1, 2, 3), [1, 2, 3]),
    "quotePublish": (lens.quote_publish(TOPIC, 5, 10**9), [TOPIC, 5, 10**9]),
    "topics": (lens.get_topics(), []),
}
SIGNED_CALLS: dict[str, tuple[Call[Any], list[object]]] = {
    "relay": (signed.relay(PUBLICATION, b"s" * 65), [KEY, b"payload", 3, 99, A, b"s" * 65]),
    "computeDigest": (signed.compute_digest(PUBLICATION), [KEY, b"payload", 3, 99, A]),
    "topics": (signed.get_topics(), []),
    "topic": (signed.get_topic_id(), []),
    "signer": (signed.get_signer(), []),
}
SUBSCRIBER_CALLS: dict[str, tuple[Call[Any], list[object]]] = {
    "subscribeTo": (subscriber.subscribe_to(TOPIC, TERMS, 10**9, 4), [TOPIC, TERMS.pack(), 4]),
    "unsubscribeFrom": (subscriber.unsubscribe_from(TOPIC, 4, A), [TOPIC, 4, A]),
    "withdrawFrom": (subscriber.withdraw_from(TOPIC, 4, 5, A), [TOPIC, 4, 5, A]),
    "collectTo": (subscriber.collect_to(A), [A]),
    "owner": (subscriber.get_owner(), []),
}
RESULTS: dict[str, tuple[list[object], object]] = {
    "create": ([TOPIC], TOPIC),
    "subscribe": ([4], 4),
    "publish": ([9], 9),
    "extsload": ([KEY], KEY),
    "getTopic": (
        [(A, POLICY.pack(), 1, 2, 3, 4, 5, True, False, 6)],
        lens.Topic(A, POLICY, 1, 2, 3, 4, 5, True, False, 6),
    ),
    "getPending": ([(KEY, 1, 2, 3, B)], lens.Pending(KEY, 1, 2, 3, B)),
    "getSubscription": ([A, TERMS.pack(), 6], lens.Subscription(A, TERMS, 6)),
    "quotePublish": ([(1, 2, 3, b"\1\5")], lens.Quote(1, 2, 3, (Outcome.DELIVERED, Outcome.NO_CODE))),
}


def get_contract(name: str) -> Contract:
    return Web3().eth.contract(abi=load_artefact(name).abi)


def list_abi(name: str, kind: str) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in load_artefact(name).abi if entry["type"] == kind}


def get_types(parameters: list[dict[str, Any]]) -> str:
    """The ABI types of an entry, tuples resolved."""
    types = [
        get_types(parameter["components"]) + parameter["type"].removeprefix("tuple")
        if parameter["type"].startswith("tuple")
        else parameter["type"]
        for parameter in parameters
    ]
    return f"({','.join(types)})"


def get_signature(entry: dict[str, Any]) -> str:
    return entry["name"] + get_types(entry["inputs"])


# --- calls


def test_every_entry_point_has_a_call() -> None:
    assert CALLS.keys() == list_abi("Topics", "function").keys()
    assert LENS_CALLS.keys() == list_abi("TopicsLens", "function").keys()
    assert SIGNED_CALLS.keys() == list_abi("SignedPublisher", "function").keys()
    assert SUBSCRIBER_CALLS.keys() <= list_abi("TravelInsurance", "function").keys()


@pytest.mark.parametrize(
    ("contract", "name"),
    [("Topics", name) for name in CALLS]
    + [("TopicsLens", name) for name in LENS_CALLS]
    + [("SignedPublisher", name) for name in SIGNED_CALLS]
    + [("TravelInsurance", name) for name in SUBSCRIBER_CALLS],
)
def test_call_is_what_web3_encodes(contract: str, name: str) -> None:
    call, arguments = (CALLS | LENS_CALLS | SIGNED_CALLS | SUBSCRIBER_CALLS)[name]
    assert "0x" + call.data.hex() == get_contract(contract).encode_abi(name, arguments)


@pytest.mark.parametrize("name", RESULTS)
def test_result_is_read_as_the_abi_declares_it(name: str) -> None:
    values, expected = RESULTS[name]
    declared = list_abi("Topics", "function") | list_abi("TopicsLens", "function")
    types = split_types(get_types(declared[name]["outputs"]))
    assert (CALLS | LENS_CALLS)[name][0].read(encode(types, values)) == expected


def test_value_goes_with_payable_calls() -> None:
    assert CALLS["subscribe"][0].value == CALLS["fund"][0].value == 10**9
    assert CALLS["publish"][0].value == 0


@pytest.mark.parametrize("data", [b"", b"\xff" * 31, b"\xff" * 64])
def test_result_of_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match=f"`{len(data)}` bytes from the chain do not decode") as raised:
        lens.get_topic(TOPIC).read(data)
    assert raised.value.reason is Reason.MALFORMED


# --- events


def test_every_event_is_known() -> None:
    declared = {get_signature(entry) for entry in list_abi("Topics", "event").values()}
    assert {log_type.signature for log_type in LOG_TYPES} == declared


SAMPLES: dict[str, object] = {
    "bytes32": TOPIC,
    "address": A,
    "uint256": 5,
    "uint96": TERMS.pack(),
    "string": "text",
    "bytes": bytes([1, 2, 7]),
}


@pytest.mark.parametrize("name", [log_type.name for log_type in LOG_TYPES])
def test_event_has_what_web3_reads(name: str) -> None:
    entry = list_abi("Topics", "event")[name]
    values = {
        parameter["name"]: POLICY.pack() if parameter["name"] == "policy" else SAMPLES[parameter["type"]]
        for parameter in entry["inputs"]
    }
    split: dict[bool, list[tuple[str, object]]] = {True: [], False: []}
    for parameter in entry["inputs"]:
        split[parameter["indexed"]].append((parameter["type"], values[parameter["name"]]))
    topics_ = [Web3.keccak(text=get_signature(entry)), *(encode([kind], [value]) for kind, value in split[True])]
    data = encode([kind for kind, _ in split[False]], [value for _, value in split[False]])
    log: Any = {
        "address": "0x" + A.hex(),
        "topics": topics_,
        "data": data,
        **dict.fromkeys(("logIndex", "transactionIndex", "blockNumber"), 0),
        **dict.fromkeys(("transactionHash", "blockHash"), KEY),
    }
    theirs = list(get_contract("Topics").events[name]().process_log(log)["args"].values())
    ours = find_event([bytes(topic) for topic in topics_], data)
    assert ours is not None
    assert [normalise(getattr(ours, field.name)) for field in dataclasses.fields(ours)] == list(map(normalise, theirs))


def normalise(value: object) -> object:
    """Ours and web3's words for the same value."""
    if isinstance(value, Policy | Terms):
        return value.pack()
    if isinstance(value, str) and value.startswith("0x"):
        return bytes.fromhex(value[2:])
    return bytes(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("topics_", [[], [bytes(32)], [KEY, KEY]])
def test_foreign_log_is_nobodys(topics_: list[bytes]) -> None:
    assert find_event(topics_, b"") is None


def test_unknown_outcome_is_refused() -> None:
    data = encode(["uint256", "uint256", "uint256", "bytes"], [0, 0, 0, b"\x01\x63"])
    with pytest.raises(InvalidInput, match="`99` is no outcome"):
        find_event([compute_type_hash(Delivered), TOPIC, bytes(32)], data)


def test_damaged_log_is_refused() -> None:
    with pytest.raises(InvalidInput, match="do not decode"):
        find_event([compute_type_hash(Delivered), TOPIC], b"")


# --- errors


@pytest.mark.parametrize(
    ("contract", "refusals"),
    [
        ("Topics", TOPICS_REFUSALS),
        ("TopicsLens", (*LENS_REFUSALS, *TOPICS_REFUSALS)),
        ("SignedPublisher", (*SIGNED_PUBLISHER_REFUSALS, *TOPICS_REFUSALS)),
    ],
)
def test_every_error_is_explained(contract: str, refusals: tuple[Refusal, ...]) -> None:
    declared = {get_signature(entry) for entry in list_abi(contract, "error").values()}
    explained = {refusal.signature for refusal in refusals}
    assert declared <= explained
    assert contract != "Topics" or declared == explained


@pytest.mark.parametrize(
    "refusal",
    [*TOPICS_REFUSALS, *LENS_REFUSALS, *SIGNED_PUBLISHER_REFUSALS, *SUBSCRIBER_REFUSALS],
    ids=lambda refusal: refusal.signature,
)
def test_error_names_its_values(refusal: Refusal) -> None:
    types = refusal.signature[refusal.signature.index("(") :]
    values = [{"bytes32": KEY, "address": A}.get(kind, 1000 + i) for i, kind in enumerate(split_types(types))]
    raised = decode_revert(compute_selector(refusal.signature) + encode(split_types(types), values))
    assert isinstance(raised, ProofcastError)
    assert (raised.reason, type(raised)) == (refusal.reason, refusal.kind)
    assert raised.hint
    shown = str(raised).lower()
    for position in (refusal.have, refusal.need):
        if position is not None:
            value = values[position]
            assert (value.hex() if isinstance(value, bytes) else str(value)) in shown


@pytest.mark.parametrize(
    ("terms", "base_fee", "sentence"),
    [
        (Terms(60_000, 100, 7), 0, "`60000` gas per callback but the topic needs between 1 and `50000`"),
        (Terms(0, 100, 7), 0, "`0` gas per callback but the topic needs between 1 and `50000`"),
        (Terms(50_000, 100, 6), 0, "`6` gwei per event but the topic needs at least `7`"),
        (Terms(50_000, 100, 7), 10**9, "`100000000` wei per gas but the topic needs at least `1000000000`"),
    ],
)
def test_bad_terms_say_which(terms: Terms, base_fee: int, sentence: str) -> None:
    words = encode(["uint96", "uint256", "uint256"], [terms.pack(), POLICY.pack(), base_fee])
    raised = decode_revert(compute_selector("BadTerms(uint96,uint256,uint256)") + words)
    assert str(raised) == f"the terms offer {sentence}"
    assert f"`{raised.have}`" in sentence
    assert f"`{raised.need}`" in sentence


def test_standard_and_unknown_errors() -> None:
    text = compute_selector("Error(string)") + encode(["string"], ["not\x1btoday"])
    assert r"`not\x1btoday`" in str(decode_revert(text))
    assert "`17`" in str(decode_revert(compute_selector("Panic(uint256)") + encode(["uint256"], [17])))
    assert "`0x12345678`" in str(decode_revert(bytes.fromhex("12345678")))
    assert "no reason" in str(decode_revert(b""))
    cut = decode_revert(compute_selector("NotOwner(address,address)") + b"short")
    assert (cut.reason, "0x" in str(cut)) == (Reason.REVERTED, True)


# --- pure computations


@given(owner=st.binary(min_size=20, max_size=20), name=st.text(min_size=1, max_size=20))
def test_topic_id_holds_the_owner(owner: bytes, name: str) -> None:
    topic = topics.compute_topic(owner, name)
    assert len(topic) == 32
    assert topic[:20] == owner
    assert topic[20:] == Web3.keccak(text=name)[20:]


@given(sequence=st.integers(1, 10**9), words=st.integers(1, 100))
def test_every_index_has_one_position(sequence: int, words: int) -> None:
    order = [compute_index(sequence, position, 8 * words) for position in range(8 * words)]
    assert sorted(order) == list(range(8 * words))
    assert order[0] == sequence % words * 8


def test_outcomes_by_index_over_two_pages() -> None:
    first = Delivered(TOPIC, 1, 0, 8, 0, (Outcome.DELIVERED,) * 8)
    second = Delivered(TOPIC, 1, 8, 0, 0, (Outcome.FAILED,) * 8)
    assert first.by_index() == dict.fromkeys(range(8, 16), Outcome.DELIVERED)
    assert second.by_index() == dict.fromkeys(range(8), Outcome.FAILED)


def test_tuple_types_are_split() -> None:
    assert split_types("(uint256,(bytes,bool)[])") == ("uint256", "(bytes,bool)[]")
    assert decode_values("()", b"") == ()

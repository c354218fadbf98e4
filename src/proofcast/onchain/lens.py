"""Every view of `TopicsLens` as a typed call: what can be read of `Topics`, and predicted; see `ITopicsLens.sol`."""

from dataclasses import dataclass

from proofcast.onchain.abi import Call, encode_call, reading
from proofcast.onchain.outcome import Outcome, parse_outcomes
from proofcast.onchain.policy import Policy, Terms, parse_policy, parse_terms
from proofcast.onchain.topics import READ_INT

LANES = 8
"""Deposits in one storage word, which are served together."""


@dataclass(frozen=True, slots=True)
class Topic:
    owner: bytes
    policy: Policy
    sequence: int
    """Number of the last event; 0 before the first."""
    end: int
    """Indexes below this one are, or were, subscriptions."""
    live: int
    """Subscriptions there are."""
    sealed_end: int
    credit_gwei: int
    delivering: bool
    pending: bool
    callback_gas: int
    """Gas a publish must bring for all callbacks, beyond its own work."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An event that is being delivered page by page."""

    event: bytes
    """Hash of the callback's calldata, with index 0."""
    sequence: int
    position: int
    end: int
    payee: bytes


@dataclass(frozen=True, slots=True)
class Subscription:
    subscriber: bytes
    """The zero address where nobody holds the index."""
    terms: Terms
    deposit_gwei: int


@dataclass(frozen=True, slots=True)
class Quote:
    gas_limit: int
    served: int
    most_credited_gwei: int
    outcomes: tuple[Outcome, ...]
    """One per index; `DELIVERED` for every call that would be made."""


def build_topic(view: tuple[bytes, int, int, int, int, int, int, bool, bool, int]) -> Topic:
    owner, policy, sequence, end, live, sealed_end, credit, delivering, pending, callback_gas = view
    return Topic(
        owner, parse_policy(policy), sequence, end, live, sealed_end, credit, delivering, pending, callback_gas
    )


def build_subscription(subscriber: bytes, terms: int, deposit: int) -> Subscription:
    return Subscription(subscriber, parse_terms(terms), deposit)


def build_quote(quote: tuple[int, int, int, bytes]) -> Quote:
    gas_limit, served, most_credited, outcomes = quote
    return Quote(gas_limit, served, most_credited, parse_outcomes(outcomes))


def build_pending(pending: tuple[bytes, int, int, int, bytes]) -> Pending:
    return Pending(*pending)


def get_topic(topic: bytes) -> Call[Topic]:
    view = "((address,uint256,uint256,uint256,uint256,uint256,uint256,bool,bool,uint256))"
    return Call(encode_call("getTopic(bytes32)", topic), reading(build_topic, view))


def get_pending(topic: bytes) -> Call[Pending]:
    view = "((bytes32,uint256,uint256,uint256,address))"
    return Call(encode_call("getPending(bytes32)", topic), reading(build_pending, view))


def get_roles(topic: bytes, account: bytes) -> Call[int]:
    return Call(encode_call("getRoles(bytes32,address)", topic, account), READ_INT)


def get_subscription(topic: bytes, index: int) -> Call[Subscription]:
    data = encode_call("getSubscription(bytes32,uint256)", topic, index)
    return Call(data, reading(build_subscription, "(address,uint96,uint256)"))


def find_hole(topic: bytes) -> Call[int]:
    return Call(encode_call("findHole(bytes32)", topic), READ_INT)


def index_at(sequence: int, position: int, end: int) -> Call[int]:
    return Call(encode_call("indexAt(uint256,uint256,uint256)", sequence, position, end), READ_INT)


def quote_publish(topic: bytes, payload_length: int, gas_price_wei: int) -> Call[Quote]:
    data = encode_call("quotePublish(bytes32,uint256,uint256)", topic, payload_length, gas_price_wei)
    return Call(data, reading(build_quote, "((uint256,uint256,uint256,bytes))"))


def get_topics() -> Call[bytes]:
    """The contract that this lens reads."""
    return Call(encode_call("topics()"), reading(bytes, "(address)"))


def compute_index(sequence: int, position: int, end: int) -> int:
    """The index that is served at a position: words of eight, from a start that rotates with the sequence."""
    words = (end + LANES - 1) // LANES
    return (sequence + position // LANES) % words * LANES + position % LANES

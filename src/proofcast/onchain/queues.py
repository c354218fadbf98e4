"""Queues, their subscribers and held messages, as typed calls of the contract `Exchanges`; see `IExchanges.sol`."""

from dataclasses import astuple, dataclass
from enum import IntEnum

from eth_hash.auto import keccak

from proofcast.onchain.abi import Call, build_from, encode_call, encode_values, reading
from proofcast.onchain.exchanges import READ_BOOL, READ_STATUS, Status
from proofcast.onchain.topics import READ_INT, READ_NOTHING, READ_WORD

TERMS_TYPE = "(bool,bool,bool,bool,uint8,bytes32,int256,uint256,uint256,uint256,uint256,uint256,bytes32)"
HEADER_TYPE = "(bytes32,uint256,address,uint256,uint256,uint256,uint256,uint256)"
VIEW_TYPE = f"(address,{TERMS_TYPE},uint256,uint256,uint256,uint256,bool,bool,uint256,uint256,bytes32)"
NO_QUEUE = NO_SUBJECT = bytes(32)


class Condition(IntEnum):
    """What a held message waits for, the same numbers as the contract's."""

    AT_ONCE = 0
    TIME = 1
    EVENT = 2
    ABOVE = 3
    BELOW = 4
    ACCOUNT = 5


@dataclass(frozen=True, slots=True)
class QueueTerms:
    """What a queue does with its messages, for ever; fields in the contract's order."""

    open_binding: bool = False
    open_subscribing: bool = False
    open_value: bool = False
    """Value is split among subscribers although anybody may be several of them."""
    lifo: bool = False
    condition: Condition = Condition.AT_ONCE
    subject: bytes = NO_SUBJECT
    """The topic, gauge or account of the condition; addresses in the last 20 bytes."""
    threshold: int = 0
    delay_s: int = 0
    not_before: int = 0
    lifetime_s: int = 30 * 86_400
    callback_gas: int = 200_000
    reward_wei: int = 0
    dead_letter: bytes = NO_QUEUE


@dataclass(frozen=True, slots=True)
class Header:
    """A message without its key and payload; fields in the contract's order."""

    exchange: bytes
    sequence: int
    publisher: bytes
    value_wei: int
    number: int
    entitled: int
    """How many were subscribed when it arrived."""
    arrived: int
    mark: int
    """Number of the last event of the topic that the queue waits for, when it arrived."""


@dataclass(frozen=True, slots=True)
class Queue:
    owner: bytes
    terms: QueueTerms
    messages: int
    """Number of the last message."""
    subscribers: int
    places: int
    """Of subscribers, and of those who left while messages were held."""
    held: int
    pending: bool
    """A message is half delivered; `release` goes on."""
    delivering: bool
    fund_wei: int
    held_value_wei: int
    next: bytes
    """Hash of the message whose turn it is."""


@dataclass(frozen=True, slots=True)
class Place:
    subscriber: bytes
    joined: int
    """Number of the last message before it joined."""
    left: int
    """Number of the first message after it left; 0 while it is there."""


def build_terms(values: tuple[object, ...]) -> QueueTerms:
    condition = Condition(int(str(values[4])))
    return build_from(QueueTerms, (*values[:4], condition, *values[5:]))


def build_queue(view: tuple[object, ...]) -> Queue:
    terms = view[1]
    assert isinstance(terms, tuple)
    return build_from(Queue, (view[0], build_terms(terms), *view[2:]))


def create_queue(name: str, terms: QueueTerms) -> Call[bytes]:
    return Call(encode_call(f"createQueue(string,{TERMS_TYPE})", name, astuple(terms)), READ_WORD)


def subscribe(queue: bytes) -> Call[None]:
    return Call(encode_call("subscribe(bytes32)", queue), READ_NOTHING)


def approve_subscriber(queue: bytes, subscriber: bytes) -> Call[None]:
    return Call(encode_call("approveSubscriber(bytes32,address)", queue, subscriber), READ_NOTHING)


def remove_subscriber(queue: bytes, subscriber: bytes) -> Call[None]:
    return Call(encode_call("removeSubscriber(bytes32,address)", queue, subscriber), READ_NOTHING)


def tidy(queue: bytes, place: int) -> Call[None]:
    return Call(encode_call("tidy(bytes32,uint256)", queue, place), READ_NOTHING)


def release(queue: bytes, header: Header, key: bytes, payload: bytes, payee: bytes) -> Call[bool]:
    signature = f"release(bytes32,{HEADER_TYPE},bytes,bytes,address)"
    return Call(encode_call(signature, queue, astuple(header), key, payload, payee), READ_BOOL)


def expire(queue: bytes, header: Header, key: bytes, payload: bytes, payee: bytes) -> Call[None]:
    signature = f"expire(bytes32,{HEADER_TYPE},bytes,bytes,address)"
    return Call(encode_call(signature, queue, astuple(header), key, payload, payee), READ_NOTHING)


def fund(queue: bytes, amount_wei: int) -> Call[None]:
    return Call(encode_call("fund(bytes32)", queue), READ_NOTHING, amount_wei)


def collect_queue(queue: bytes, to: bytes) -> Call[int]:
    return Call(encode_call("collectQueue(bytes32,address)", queue, to), READ_INT)


def get_queue(queue: bytes) -> Call[Queue]:
    return Call(encode_call("getQueue(bytes32)", queue), reading(build_queue, f"({VIEW_TYPE})"))


def get_subscriber(queue: bytes, place: int) -> Call[Place]:
    data = encode_call("getSubscriber(bytes32,uint256)", queue, place)
    return Call(data, reading(Place, "(address,uint256,uint256)"))


def get_subscriber_status(queue: bytes, subscriber: bytes) -> Call[Status]:
    return Call(encode_call("getSubscriberStatus(bytes32,address)", queue, subscriber), READ_STATUS)


def is_releasable(queue: bytes, header: Header) -> Call[bool]:
    return Call(encode_call(f"isReleasable(bytes32,{HEADER_TYPE})", queue, astuple(header)), READ_BOOL)


def compute_message_hash(header: Header, key: bytes, payload: bytes) -> bytes:
    """What a queue keeps of a held message."""
    values = (astuple(header), bytes(keccak(key)), bytes(keccak(payload)))
    return bytes(keccak(encode_values(f"({HEADER_TYPE},bytes32,bytes32)", values)))

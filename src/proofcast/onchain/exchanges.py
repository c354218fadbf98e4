"""Exchanges, their publishers and bindings, as typed calls of the contract `Exchanges`; see `IExchanges.sol`."""

from dataclasses import dataclass
from enum import IntEnum

from proofcast.onchain.abi import Call, encode_call, reading
from proofcast.onchain.topics import READ_INT, READ_NOTHING, READ_WORD

READ_BOOL = reading(bool, "(bool)")


class Status(IntEnum):
    """How far an edge has come, the same numbers as the contract's."""

    NONE = 0
    REQUESTED = 1
    APPROVED = 2
    REJECTED = 3
    REMOVED = 4


@dataclass(frozen=True, slots=True)
class Exchange:
    owner: bytes
    open: bool
    """Anybody may publish."""
    hash_may_be_nothing: bool
    """`#` stands for none or one character."""
    fee_wei: int
    sequence: int
    """Number of the last message."""
    bindings: int
    balance_wei: int


@dataclass(frozen=True, slots=True)
class Binding:
    queue: bytes
    key: str


READ_STATUS = reading(Status, "(uint8)")


def build_exchange(view: tuple[bytes, bool, bool, int, int, int, int]) -> Exchange:
    return Exchange(*view)


def create_exchange(
    name: str, *, is_open: bool = False, hash_may_be_nothing: bool = False, fee_wei: int = 0
) -> Call[bytes]:
    signature = "createExchange(string,bool,bool,uint256)"
    return Call(encode_call(signature, name, is_open, hash_may_be_nothing, fee_wei), READ_WORD)


def request_publishing(exchange: bytes) -> Call[None]:
    return Call(encode_call("requestPublishing(bytes32)", exchange), READ_NOTHING)


def approve_publisher(exchange: bytes, publisher: bytes) -> Call[None]:
    return Call(encode_call("approvePublisher(bytes32,address)", exchange, publisher), READ_NOTHING)


def remove_publisher(exchange: bytes, publisher: bytes) -> Call[None]:
    return Call(encode_call("removePublisher(bytes32,address)", exchange, publisher), READ_NOTHING)


def request_binding(exchange: bytes, queue: bytes, key: str) -> Call[None]:
    return Call(encode_call("requestBinding(bytes32,bytes32,string)", exchange, queue, key), READ_NOTHING)


def approve_binding(exchange: bytes, queue: bytes, key: str) -> Call[None]:
    return Call(encode_call("approveBinding(bytes32,bytes32,string)", exchange, queue, key), READ_NOTHING)


def remove_binding(exchange: bytes, queue: bytes, key: str) -> Call[None]:
    return Call(encode_call("removeBinding(bytes32,bytes32,string)", exchange, queue, key), READ_NOTHING)


def publish(exchange: bytes, key: bytes, payload: bytes, value_wei: int = 0) -> Call[int]:
    """`key` as `routing.key.encode_routing_key` makes it."""
    return Call(encode_call("publish(bytes32,bytes,bytes)", exchange, key, payload), READ_INT, value_wei)


def collect(to: bytes) -> Call[int]:
    return Call(encode_call("collect(address)", to), READ_INT)


def collect_exchange(exchange: bytes, to: bytes) -> Call[int]:
    return Call(encode_call("collectExchange(bytes32,address)", exchange, to), READ_INT)


def get_exchange(exchange: bytes) -> Call[Exchange]:
    view = "((address,bool,bool,uint256,uint256,uint256,uint256))"
    return Call(encode_call("getExchange(bytes32)", exchange), reading(build_exchange, view))


def get_binding(exchange: bytes, place: int) -> Call[Binding]:
    data = encode_call("getBinding(bytes32,uint256)", exchange, place)
    return Call(data, reading(Binding, "(bytes32,string)"))


def get_publisher_status(exchange: bytes, publisher: bytes) -> Call[Status]:
    return Call(encode_call("getPublisherStatus(bytes32,address)", exchange, publisher), READ_STATUS)


def get_binding_status(exchange: bytes, queue: bytes, key: str) -> Call[Status]:
    return Call(encode_call("getBindingStatus(bytes32,bytes32,string)", exchange, queue, key), READ_STATUS)


def get_credit(account: bytes) -> Call[int]:
    """Wei that an account can collect."""
    return Call(encode_call("getCredit(address)", account), READ_INT)


def is_match(key: bytes, binding: str, *, hash_may_be_nothing: bool = False) -> Call[bool]:
    return Call(encode_call("isMatch(bytes,string,bool)", key, binding, hash_may_be_nothing), READ_BOOL)


def id_of(owner: bytes, name: str) -> Call[bytes]:
    return Call(encode_call("idOf(address,string)", owner, name), READ_WORD)


def get_topics() -> Call[bytes]:
    return Call(encode_call("topics()"), reading(bytes, "(address)"))


def get_full_gas() -> Call[int]:
    return Call(encode_call("FULL_GAS()"), READ_INT)


def get_held_max() -> Call[int]:
    return Call(encode_call("HELD_MAX()"), READ_INT)

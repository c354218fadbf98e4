"""Every entry point of the contract `Topics`, as a typed call; `ITopics.sol` says what each does."""

from eth_hash.auto import keccak

from proofcast.onchain.abi import NOBODY, Call, encode_call, reading, returning_nothing
from proofcast.onchain.policy import Policy, Terms

APPEND = (1 << 256) - 1
"""A `hole` that no list has: the subscription is appended."""
NO_KEY = bytes(32)
MAY_PUBLISH = 1
MAY_SUBSCRIBE = 2


READ_NOTHING = reading(returning_nothing, "()")
READ_INT = reading(int, "(uint256)")
READ_WORD = reading(bytes, "(bytes32)")


def create(name: str, policy: Policy | None = None) -> Call[bytes]:
    return Call(encode_call("create(uint256,string)", policy.pack() if policy else 0, name), READ_WORD)


def set_payload_type(topic: bytes, payload_type: str) -> Call[None]:
    return Call(encode_call("setPayloadType(bytes32,string)", topic, payload_type), READ_NOTHING)


def set_policy(topic: bytes, policy: Policy) -> Call[None]:
    return Call(encode_call("setPolicy(bytes32,uint256)", topic, policy.pack()), READ_NOTHING)


def set_roles(topic: bytes, account: bytes, roles: int) -> Call[None]:
    return Call(encode_call("setRoles(bytes32,address,uint256)", topic, account, roles), READ_NOTHING)


def subscribe(topic: bytes, terms: Terms, deposit_wei: int, hole: int = APPEND) -> Call[int]:
    data = encode_call("subscribe(bytes32,uint96,uint256)", topic, terms.pack(), hole)
    return Call(data, READ_INT, deposit_wei)


def fund(topic: bytes, index: int, amount_wei: int) -> Call[None]:
    return Call(encode_call("fund(bytes32,uint256)", topic, index), READ_NOTHING, amount_wei)


def withdraw(topic: bytes, index: int, amount_gwei: int, to: bytes) -> Call[None]:
    data = encode_call("withdraw(bytes32,uint256,uint256,address)", topic, index, amount_gwei, to)
    return Call(data, READ_NOTHING)


def unsubscribe(topic: bytes, index: int, to: bytes) -> Call[int]:
    return Call(encode_call("unsubscribe(bytes32,uint256,address)", topic, index, to), READ_INT)


def publish(
    topic: bytes, payload: bytes, *, key: bytes = NO_KEY, expected: int = 0, payee: bytes = NOBODY
) -> Call[int]:
    signature = "publish(bytes32,bytes32,uint256,address,bytes)"
    return Call(encode_call(signature, topic, key, expected, payee, payload), READ_INT)


def deliver(topic: bytes, key: bytes, payload: bytes, payee: bytes) -> Call[int]:
    data = encode_call("deliver(bytes32,bytes32,address,bytes)", topic, key, payee, payload)
    return Call(data, READ_INT)


def seal(topic: bytes) -> Call[int]:
    return Call(encode_call("seal(bytes32)", topic), READ_INT)


def collect(to: bytes) -> Call[int]:
    return Call(encode_call("collect(address)", to), READ_INT)


def collect_topic(topic: bytes, to: bytes) -> Call[int]:
    return Call(encode_call("collectTopic(bytes32,address)", topic, to), READ_INT)


def topic_of(owner: bytes, name: str) -> Call[bytes]:
    return Call(encode_call("topicOf(address,string)", owner, name), READ_WORD)


def get_credit(account: bytes) -> Call[int]:
    return Call(encode_call("getCredit(address)", account), READ_INT)


def extsload(slot: bytes) -> Call[bytes]:
    """The contents of a storage slot."""
    return Call(encode_call("extsload(bytes32)", slot), READ_WORD)


def compute_topic(owner: bytes, name: str) -> bytes:
    """The id of a topic: its owner's address and the last 12 bytes of its name's hash."""
    return owner + bytes(keccak(name.encode())[-12:])

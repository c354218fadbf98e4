"""Calls of a contract that follows the `Subscriber` base: its owner subscribes it, withdraws and ends."""

from proofcast.onchain.abi import Call, encode_call, reading
from proofcast.onchain.policy import Terms
from proofcast.onchain.topics import APPEND, READ_INT, READ_NOTHING

READ_ADDRESS = reading(bytes, "(address)")


def subscribe_to(topic: bytes, terms: Terms, deposit_wei: int, hole: int = APPEND) -> Call[int]:
    data = encode_call("subscribeTo(bytes32,uint96,uint256)", topic, terms.pack(), hole)
    return Call(data, READ_INT, deposit_wei)


def unsubscribe_from(topic: bytes, index: int, to: bytes) -> Call[int]:
    return Call(encode_call("unsubscribeFrom(bytes32,uint256,address)", topic, index, to), READ_INT)


def withdraw_from(topic: bytes, index: int, amount_gwei: int, to: bytes) -> Call[None]:
    data = encode_call("withdrawFrom(bytes32,uint256,uint256,address)", topic, index, amount_gwei, to)
    return Call(data, READ_NOTHING)


def collect_to(to: bytes) -> Call[int]:
    return Call(encode_call("collectTo(address)", to), READ_INT)


def get_owner() -> Call[bytes]:
    return Call(encode_call("owner()"), READ_ADDRESS)

"""Trying a transaction before it is sent: what would be refused costs nothing and is explained."""

from proofcast.chain.io.answers import parse_quantity
from proofcast.chain.io.rpc import NodeRefused, RpcClient
from proofcast.errors import InvalidRequest, Reason
from proofcast.onchain.abi import format_value
from proofcast.onchain.io.fees import Fees
from proofcast.onchain.io.reading import encode_hex, explain_refusal
from proofcast.onchain.request import Request

TRANSACTION_GAS_MAX = 1 << 24
"""EIP-7825: no transaction may bring more."""
GAS_MARGIN_PERCENT = 25
"""On top of a node's estimate: state may change before the transaction is mined."""


def simulate(rpc: RpcClient, sender: bytes, request: Request, fees: Fees) -> int:
    """The gas limit with which the request succeeds now; raises what the contract or the account's means refuse."""
    transaction = describe(sender, request)
    price = {"maxFeePerGas": hex(fees.max_fee), "maxPriorityFeePerGas": hex(fees.tip)}
    require_funds(rpc, sender, request.value + (request.gas_limit or 0) * fees.max_fee)
    try:
        if request.gas_limit is not None:
            rpc.call("eth_call", transaction | price | {"gas": hex(request.gas_limit)}, "latest")
            return request.gas_limit
        # Without a price: with one, a poor account's estimate fails for lack of gas instead of money.
        estimate = parse_quantity(rpc.call("eth_estimateGas", transaction))
    except NodeRefused as refused:
        raise explain_refusal(refused) from refused
    gas_limit = min(estimate * (100 + GAS_MARGIN_PERCENT) // 100, max(estimate, TRANSACTION_GAS_MAX))
    require_funds(rpc, sender, request.value + gas_limit * fees.max_fee)
    return gas_limit


def describe(sender: bytes, request: Request) -> dict[str, str]:
    """The request as a node simulates it."""
    described = {"from": encode_hex(sender), "data": encode_hex(request.data), "value": hex(request.value)}
    return described | ({"to": encode_hex(request.to)} if request.to else {})


def require_funds(rpc: RpcClient, account: bytes, need: int) -> None:
    have = parse_quantity(rpc.call("eth_getBalance", encode_hex(account), "latest"))
    if have < need:
        raise InvalidRequest(
            Reason.NO_FUNDS,
            f"`{format_value(account)}` has `{have}` wei but this call needs up to `{need}` wei",
            hint="send ether to the account, or use another key",
            have=have,
            need=need,
        )

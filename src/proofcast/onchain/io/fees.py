"""What a transaction pays for gas (EIP-1559), and when it pays more."""

from dataclasses import dataclass

from proofcast.chain.io.answers import parse_quantity
from proofcast.chain.io.rpc import RpcClient
from proofcast.errors import InvalidInput, Reason, Unavailable


@dataclass(frozen=True, slots=True)
class FeePolicy:
    max_fee_wei: int | None = None
    """Most per gas, whatever happens; None for no limit of our own."""
    tip_wei: int | None = None
    """For the block's builder, per gas; None for what the node suggests."""
    bump_percent: int = 25
    """By how much a replacement pays more; nodes demand 10 at least."""
    replace_after_s: float = 60.0
    """Five blocks of the main network: who is not in by then pays too little."""
    wait_s_max: float = 600.0


DEFAULT_FEES = FeePolicy()


@dataclass(frozen=True, slots=True)
class Fees:
    """Wei per gas."""

    max_fee: int
    tip: int
    expected: int
    """What a transaction of the next block would really pay."""


def get_fees(rpc: RpcClient, policy: FeePolicy) -> Fees:
    """Fees with room for a base fee that doubles: six full blocks in a row."""
    block, suggested = rpc.batch([("eth_getBlockByNumber", ["latest", False]), ("eth_maxPriorityFeePerGas", [])])
    if not isinstance(block, dict) or "baseFeePerGas" not in block:
        raise InvalidInput(
            Reason.MALFORMED,
            f"the node at `{rpc.host}` reports no base fee",
            hint="use a chain with the London rules or later",
        )
    base = parse_quantity(block["baseFeePerGas"])
    tip = parse_quantity(suggested) if policy.tip_wei is None else policy.tip_wei
    return limit_fees(base, tip, policy)


def limit_fees(base: int, tip: int, policy: FeePolicy) -> Fees:
    most = policy.max_fee_wei
    if most is not None and base > most:
        raise Unavailable(
            Reason.NOT_YET,
            f"the base fee is `{base}` wei but at most `{most}` wei may be paid",
            hint="wait until it falls, or allow more with `--max-fee`",
            have=base,
            need=most,
        )
    max_fee = 2 * base + tip if most is None else min(2 * base + tip, most)
    tip = min(tip, max_fee)
    return Fees(max_fee, tip, min(base + tip, max_fee))


def find_bumped(old_max_fee: int, old_tip: int, market: Fees, policy: FeePolicy) -> Fees | None:
    """Fees with which a replacement is accepted; None where they exceed the most that may be paid."""
    factor = 100 + policy.bump_percent
    max_fee = max(market.max_fee, old_max_fee * factor // 100 + 1)
    tip = max(market.tip, old_tip * factor // 100 + 1)
    if policy.max_fee_wei is not None and max_fee > policy.max_fee_wei:
        return None
    return Fees(max_fee, tip, market.expected)

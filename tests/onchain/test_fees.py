"""What a transaction pays, and when it pays more: pure arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.chain.io.rpc import RpcClient
from proofcast.errors import InvalidInput, Reason, Unavailable
from proofcast.onchain.io.fees import FeePolicy, Fees, find_bumped, get_fees, limit_fees
from proofcast.testing.chain import Answer, JsonValue, ScriptedNode, encode

WEI = st.integers(0, 10**13)


def test_base_fee_above_the_most_is_refused_for_now() -> None:
    with pytest.raises(Unavailable, match="the base fee is `11` wei but at most `10` wei may be paid") as raised:
        limit_fees(11, 1, FeePolicy(max_fee_wei=10))
    assert (raised.value.reason, raised.value.have, raised.value.need) == (Reason.NOT_YET, 11, 10)


def test_chain_without_base_fee_is_refused() -> None:
    def answer(request: JsonValue) -> Answer:
        assert isinstance(request, list)
        results: list[JsonValue] = [{"number": "0x1"}, "0x1"]
        return encode(
            [{"id": call["id"], "result": results[i]} for i, call in enumerate(request) if isinstance(call, dict)]
        )

    with ScriptedNode([answer]) as node, RpcClient(node.url) as rpc, pytest.raises(InvalidInput, match="no base fee"):
        get_fees(rpc, FeePolicy())


@given(base=WEI, tip=WEI)
def test_fees_leave_room_for_a_doubled_base_fee(base: int, tip: int) -> None:
    fees = limit_fees(base, tip, FeePolicy())
    assert fees == Fees(2 * base + tip, tip, base + tip)


@given(base=WEI, tip=WEI, most=WEI)
def test_fees_never_exceed_the_most(base: int, tip: int, most: int) -> None:
    if base <= most:
        fees = limit_fees(base, tip, FeePolicy(max_fee_wei=most))
        assert fees.tip <= fees.max_fee <= most
        assert base <= fees.expected <= most


@given(max_fee=WEI, tip=WEI, base=WEI, suggested=WEI)
def test_replacement_pays_at_least_a_tenth_more(max_fee: int, tip: int, base: int, suggested: int) -> None:
    market = limit_fees(base, suggested, FeePolicy())
    bumped = find_bumped(max_fee, tip, market, FeePolicy())
    assert bumped is not None
    assert bumped.max_fee * 10 >= max_fee * 11
    assert bumped.tip * 10 >= tip * 11
    assert bumped.max_fee > max_fee


def test_replacement_beyond_the_most_is_not_made() -> None:
    assert find_bumped(100, 10, Fees(50, 5, 30), FeePolicy(max_fee_wei=110)) is None

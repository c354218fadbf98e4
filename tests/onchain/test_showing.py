"""Values as a person reads them."""

from eth_utils.address import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from proofcast.onchain.showing import format_value


@given(st.binary(min_size=20, max_size=20))
def test_address_has_the_checksum_that_others_give_it(address: bytes) -> None:
    assert format_value(address) == to_checksum_address(address)


@given(st.text())
def test_text_by_strangers_cannot_steer_a_terminal(text: str) -> None:
    assert format_value(text).isprintable()

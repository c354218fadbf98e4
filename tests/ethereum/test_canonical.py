"""Data in its usual form, decoded as the library does; anything else is left to the library."""

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from proofcast.ethereum.abi import CODEC
from proofcast.ethereum.canonical import decode_canonical

VALUES = {
    "address": st.binary(min_size=20, max_size=20),
    "bool": st.booleans(),
    "bytes": st.binary(max_size=70),
    "bytes1": st.binary(min_size=1, max_size=1),
    "bytes32": st.binary(min_size=32, max_size=32),
    "int8": st.integers(-128, 127),
    "int256": st.integers(-(2**255), 2**255 - 1),
    "string": st.text(max_size=20),
    "uint8": st.integers(0, 255),
    "uint256": st.integers(0, 2**256 - 1),
}
TYPES = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5).map(tuple)


@given(st.data(), TYPES)
def test_usual_form_is_read_as_the_library_reads_it(drawn: st.DataObject, types: tuple[str, ...]) -> None:
    values = tuple(drawn.draw(VALUES[name]) for name in types)
    data = encode(types, values)
    assert decode_canonical(types, data) == CODEC.decode(types, data, strict=False) == values


@given(st.data(), TYPES)
def test_changed_data_is_read_alike_or_left_to_the_library(drawn: st.DataObject, types: tuple[str, ...]) -> None:
    data = bytearray(encode(types, [drawn.draw(VALUES[name]) for name in types]))
    data[drawn.draw(st.integers(0, len(data) - 1))] = drawn.draw(st.integers(0, 255))
    cut = bytes(data[: drawn.draw(st.integers(len(data) - 33, len(data)))])
    found = decode_canonical(types, cut)
    assert found is None or found == CODEC.decode(types, cut, strict=False)


@pytest.mark.parametrize("types", [("uint256[]",), ("(uint8,bytes)",), ("uint8", "bytes[2]"), ("fixed128x18",)])
def test_other_types_are_left_to_the_library(types: tuple[str, ...]) -> None:
    assert decode_canonical(types, bytes(256)) is None


@pytest.mark.parametrize("length", [1 << 40, 1 << 255])
def test_absurd_length_is_left_to_the_library(length: int) -> None:
    assert decode_canonical(("bytes",), (32).to_bytes(32) + length.to_bytes(32)) is None

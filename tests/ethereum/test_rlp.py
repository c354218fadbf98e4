"""Only the one canonical encoding is read; anything else is refused where it goes wrong."""

import pytest
import rlp as other
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum import rlp
from proofcast.ethereum.rlp import Item

ITEMS: st.SearchStrategy[Item] = st.recursive(
    st.binary(max_size=80), lambda inner: st.lists(inner, max_size=6), max_leaves=30
)

REFUSED = [
    (b"", 0, "the data ends where an item should begin"),
    (b"\x83ab", 0, "an item of `3` bytes ends beyond what holds it"),
    (b"\xc3\x82a", 0, "an item of `3` bytes ends beyond what holds it"),
    (b"\xc3\x01\x83a", 2, "an item of `3` bytes ends beyond what holds it"),
    (b"\xc2\x01\xb8", 3, "the data ends within a length"),
    (b"\xb8", 1, "the data ends within a length"),
    (b"\xbf\xff\xff", 1, "the data ends within a length"),
    (b"\xff" + b"\xff" * 8, 0, "an item of `18446744073709551615` bytes ends beyond"),
    (b"\x81\x7f", 0, "a single byte is written as a string"),
    (b"\xb8\x37" + b"a" * 55, 1, "a length is not written in its shortest form"),
    (b"\xb9\x00\x38" + b"a" * 56, 1, "a length is not written in its shortest form"),
    (b"\xf8\x37" + b"a" * 55, 1, "a length is not written in its shortest form"),
    (b"\x01\x02", 1, "something follows the item"),
    (b"\xc0\x00", 1, "something follows the item"),
    (b"\xc2\x81\x05", 1, "a single byte is written as a string"),
]


@pytest.mark.parametrize(("data", "position", "fault"), REFUSED)
def test_other_encoding_is_refused_with_its_position(data: bytes, position: int, fault: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        rlp.decode(data)
    assert refused.value.reason is Reason.MALFORMED
    assert str(refused.value).startswith(fault)
    assert str(refused.value).endswith(f"at byte `{position}`")


def nest(depth: int) -> bytes:
    data = b"\xc0"
    for _ in range(depth):
        data = rlp.encode_head(len(data), rlp.LIST, rlp.LONG_LIST) + data
    return data


def test_bomb_of_brackets_is_refused() -> None:
    assert rlp.encode(rlp.decode(nest(rlp.DEPTH_MAX))) == nest(rlp.DEPTH_MAX)
    with pytest.raises(InvalidInput, match="nested deeper than `64`"):
        rlp.decode(nest(rlp.DEPTH_MAX + 1))
    with pytest.raises(InvalidInput, match="nested deeper than `64`"):
        rlp.decode(nest(5_000))


@pytest.mark.parametrize(
    ("data", "bits", "fault"),
    [
        (b"\xc0", 64, "a list stands"),
        (b"\x00", 64, "begins with a zero byte"),
        (b"\x82\x01\x00", 8, "more than `8` bits"),
    ],
)
def test_wrong_integer_is_refused(data: bytes, bits: int, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        rlp.get_integer(data, rlp.read_whole(data), bits)


@given(ITEMS)
def test_items_come_back_and_another_library_agrees(item: Item) -> None:
    encoded = rlp.encode(item)
    assert encoded == other.encode(item)
    assert rlp.decode(encoded) == item


@given(st.binary(max_size=70))
def test_what_is_read_is_the_only_encoding(data: bytes) -> None:
    try:
        item = rlp.decode(data)
    except InvalidInput:
        return
    assert rlp.encode(item) == data


@given(st.integers(min_value=0, max_value=2**256 - 1))
def test_integers_come_back(number: int) -> None:
    data = rlp.encode(rlp.encode_integer(number))
    assert rlp.get_integer(data, rlp.read_whole(data), 256) == number

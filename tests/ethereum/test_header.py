"""Headers of every fork, in and out byte for byte, by the definition and by the kernel alike."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidInput
from proofcast.ethereum import kernel, rlp
from proofcast.ethereum.header import Header, compute_hash, encode_header, parse_header
from proofcast.ethereum.rlp import Item
from proofcast.testing.ethereum import Recorded, damage

FRONTIER = Header(
    bytes(32),
    bytes(32),
    bytes(20),
    bytes(32),
    bytes(32),
    bytes(32),
    bytes(256),
    1,
    2,
    3,
    4,
    5,
    b"",
    bytes(32),
    bytes(8),
)
FORKS = {
    "frontier": FRONTIER,
    "london": (london := replace(FRONTIER, base_fee=2**200)),
    "shanghai": (shanghai := replace(london, withdrawals_root=b"w" * 32)),
    "cancun": (cancun := replace(shanghai, blob_gas_used=0, excess_blob_gas=2**17, parent_beacon_root=b"p" * 32)),
    "prague": (prague := replace(cancun, requests_hash=b"r" * 32)),
    "one to come": replace(prague, further=(b"h" * 32, b"", b"\x05")),
}
FIELD_COUNTS = [15, 16, 17, 20, 21, 24]

Parse = Callable[[bytes], Header]


@pytest.fixture(params=["definition", pytest.param("kernel", marks=pytest.mark.needs("kernel"))])
def parse(request: pytest.FixtureRequest) -> Parse:
    return parse_header if request.param == "definition" else kernel.parse_header


def encode_with(index: int, item: Item) -> bytes:
    fields = rlp.decode(encode_header(prague))
    assert isinstance(fields, list)
    fields[index] = item
    return rlp.encode(fields)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (encode_with(0, bytes(31)), "a string of `31` bytes stands where `32` belong at byte `3`"),
        (encode_with(2, bytes(21)), "a string of `21` bytes"),
        (encode_with(6, bytes(255)), "a string of `255` bytes"),
        (encode_with(8, b"\0\1"), "begins with a zero byte"),
        (encode_with(8, b"\x80" + bytes(7)), "more than `63` bits"),
        (encode_with(15, b"\1" + bytes(32)), "more than `256` bits"),
        (encode_with(20, []), "a list stands"),
        (encode_header(FRONTIER)[:-1], "ends beyond what holds it"),
        (encode_header(FRONTIER) + b"\0", "something follows"),
        (rlp.encode([b""] * 14), "`14` items instead of `15` or more"),
        (rlp.encode(b"header"), "a string stands where a list belongs"),
    ],
)
def test_wrong_header_is_refused(parse: Parse, data: bytes, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        parse(data)


@pytest.mark.parametrize(("fork", "count"), list(zip(FORKS, FIELD_COUNTS, strict=True)))
def test_header_of_every_fork(parse: Parse, fork: str, count: int) -> None:
    """Flaw O8 of Decentagram's broker: its parser stops at Cancun."""
    encoded = encode_header(FORKS[fork])
    fields = rlp.decode(encoded)
    assert len(fields) == count
    assert parse(encoded) == FORKS[fork]


@pytest.mark.needs("kernel")
@given(fork=st.sampled_from(list(FORKS)), seed=st.integers(min_value=0, max_value=2**32 - 1))
def test_kernel_accepts_exactly_what_the_definition_accepts(fork: str, seed: int) -> None:
    dice, data = Random(seed), encode_header(FORKS[fork])
    for _ in range(dice.randrange(3)):
        data = damage(dice, data)
    try:
        expected = parse_header(data)
    except InvalidInput:
        expected = None
    found = kernel.parse_natively(data)
    assert (None if found is None else Header(*found)) == expected


@pytest.mark.needs("data")
def test_recorded_headers_have_their_hashes(recorded: Sequence[Recorded]) -> None:
    counts = set()
    for block in recorded:
        assert f"0x{compute_hash(block.raw.header).hex()}" == block.facts["hash"]
        assert f"0x{block.header.parent_hash.hex()}" == block.facts["parent"]
        assert block.header.number == block.facts["number"]
        assert encode_header(block.header) == block.raw.header
        counts.add(block.facts["header_fields"])
    assert counts == {15, 16, 17, 20, 21}

"""Receipts checked against a root and turned into columns, by the definition and by the kernel alike."""

from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum import columns, kernel
from proofcast.ethereum.bloom import LogFilter, compute_bloom, match_blooms
from proofcast.ethereum.columns import Buffers, LogColumns
from proofcast.ethereum.receipt import Log, Receipt, encode_receipt, parse_receipt
from proofcast.ethereum.rlp import DEPTH_MAX, LIST, LONG_LIST, encode_head
from proofcast.ethereum.trie import compute_ordered_root
from proofcast.testing.ethereum import Recorded, damage, draw_log, draw_receipt

SEEDS = st.integers(min_value=0, max_value=2**32 - 1)
LOGS = (Log(b"a" * 20, (b"t" * 32,), b"data"), Log(b"b" * 20, (), b""))
RECEIPTS = [
    encode_receipt(Receipt(0, b"r" * 32, 21_000, compute_bloom(()), ())),
    encode_receipt(Receipt(2, b"\1", 42_000, compute_bloom(LOGS), LOGS)),
]
ROOT = compute_ordered_root(RECEIPTS)
BLOOM = compute_bloom(LOGS)

Check = Callable[[Sequence[bytes], bytes, bytes | None], LogColumns]


@pytest.fixture(params=["definition", pytest.param("kernel", marks=pytest.mark.needs("kernel"))])
def check(request: pytest.FixtureRequest) -> Check:
    return columns.check_receipts if request.param == "definition" else kernel.check_receipts


def refuse(check: Check, receipts: Sequence[bytes], root: bytes, bloom: bytes | None, fault: str) -> InvalidInput:
    with pytest.raises(InvalidInput, match=fault) as refused:
        check(receipts, root, bloom)
    return refused.value


# --- refusals


def test_other_root_is_refused(check: Check) -> None:
    error = refuse(check, RECEIPTS, b"r" * 32, None, f"`{ROOT.hex()}` instead of the header's `{'72' * 32}`")
    assert error.reason is Reason.DISAGREES


@pytest.mark.parametrize("lie", [RECEIPTS[:1], RECEIPTS[::-1], [*RECEIPTS, RECEIPTS[0]], []])
def test_withheld_or_reordered_receipts_are_refused(check: Check, lie: list[bytes]) -> None:
    refuse(check, lie, ROOT, None, f"the `{len(lie)}` receipts have the root")


def test_malformed_receipt_is_refused_with_its_position(check: Check) -> None:
    error = refuse(check, [RECEIPTS[0], RECEIPTS[1][:-1]], ROOT, None, "receipt `1`: an item of .* at byte `1`")
    assert error.reason is Reason.MALFORMED


def test_bloom_that_is_not_of_the_logs_is_refused(check: Check) -> None:
    lie = [encode_receipt(Receipt(2, b"\1", 1, bytes(256), LOGS))]
    refuse(check, lie, compute_ordered_root(lie), bytes(256), "the bloom of receipt `0` is not that of its `2` logs")


def test_other_bloom_in_the_header_is_refused(check: Check) -> None:
    refuse(check, RECEIPTS, ROOT, bytes(256), "the blooms of `2` receipts together are not the header's")


def test_impossible_lengths_are_refused(check: Check) -> None:
    refuse(check, RECEIPTS, ROOT[:31], None, "instead of the header's")
    refuse(check, RECEIPTS, ROOT, BLOOM[:255], "not the header's")


# --- successes


def read_integers(column: Buffers) -> list[int | None]:
    validity, values = column
    numbers = array("q", values or b"")
    return [number if is_valid(validity, at) else None for at, number in enumerate(numbers)]


def read_strings(column: Buffers) -> list[bytes | None]:
    validity, offsets, values = column
    ends = array("i", offsets or b"")
    strings = [(values or b"")[start:end] for start, end in pairwise(ends)]
    return [string if is_valid(validity, at) else None for at, string in enumerate(strings)]


def is_valid(validity: bytes | None, at: int) -> bool:
    return validity is None or bool(validity[at // 8] >> at % 8 & 1)


def test_columns_hold_what_the_receipts_say(check: Check) -> None:
    found = check(RECEIPTS, ROOT, BLOOM)
    assert (found.receipts, found.logs) == (2, 2)
    assert read_integers(found.transaction_index) == [1, 1]
    assert read_integers(found.log_index) == [0, 1]
    assert read_strings(found.address) == [b"a" * 20, b"b" * 20]
    assert read_strings(found.topic0) == [b"t" * 32, None]
    assert read_strings(found.topic3) == [None, None]
    assert read_strings(found.data) == [b"data", b""]
    assert read_integers(found.type) == [0, 2]
    assert read_integers(found.status) == [None, 1]
    assert read_integers(found.cumulative_gas) == [21_000, 42_000]
    assert read_integers(found.log_count) == [0, 2]


def test_empty_block_has_empty_columns(check: Check) -> None:
    found = check([], compute_ordered_root([]), bytes(256))
    assert (found.receipts, found.logs) == (0, 0)
    assert (read_strings(found.data), read_integers(found.type)) == ([], [])


def test_arrow_takes_the_buffers_as_they_are(check: Check) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs `pyarrow`: it comes with the extra `spark`")
    found = check(RECEIPTS, ROOT, BLOOM)

    def build(kind: object, count: int, buffers: Buffers) -> list[object]:
        wrapped = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
        column = pa.Array.from_buffers(kind, count, wrapped)
        column.validate(full=True)
        return list(column.to_pylist())

    assert build(pa.binary(), found.logs, found.topic0) == [b"t" * 32, None]
    assert build(pa.int64(), found.receipts, found.status) == [None, 1]


@pytest.mark.needs("data")
def test_foreign_blooms_are_not_looked_at(check: Check, big_block: Recorded) -> None:
    assert check(big_block.receipts, big_block.header.receipts_root, None).logs == big_block.facts["logs"]


# --- the kernel is the definition, compiled


def assert_agreement(receipts: Sequence[bytes], root: bytes, bloom: bytes | None) -> None:
    try:
        expected = columns.check_receipts(receipts, root, bloom)
    except InvalidInput:
        expected = None
    for width in kernel.WIDTHS:
        found = kernel.check_natively(receipts, root, bloom, width)
        assert (None if found is None else LogColumns(*found)) == expected, f"{width} lanes"


@pytest.mark.needs("kernel")
@given(SEEDS, st.integers(min_value=0, max_value=20))
def test_kernel_agrees_on_made_up_blocks(seed: int, count: int) -> None:
    dice = Random(seed)
    receipts = [encode_receipt(draw_receipt(dice)) for _ in range(count)]
    logs = [log for raw in receipts for log in parse_receipt(raw).logs]
    assert_agreement(receipts, compute_ordered_root(receipts), compute_bloom(logs))


@pytest.mark.needs("kernel")
@given(SEEDS)
def test_kernel_agrees_on_damaged_receipts(seed: int) -> None:
    dice = Random(seed)
    raw = encode_receipt(draw_receipt(dice))
    for _ in range(dice.randrange(3)):
        raw = damage(dice, raw)
    assert_agreement([raw], compute_ordered_root([raw]), dice.choice((None, bytes(256))))


@pytest.mark.needs("kernel")
@pytest.mark.parametrize("depth", [0, DEPTH_MAX - 1, DEPTH_MAX, DEPTH_MAX + 1, 1_000])
def test_kernel_agrees_on_nested_further_fields(depth: int) -> None:
    inner: bytes = b"\xc0"
    for _ in range(depth):
        inner = encode_head(len(inner), LIST, LONG_LIST) + inner
    payload = b"\1\x01" + b"\xb9\x01\x00" + bytes(256) + b"\xc0" + inner
    raw = b"\x05" + encode_head(len(payload), LIST, LONG_LIST) + payload
    assert_agreement([raw], compute_ordered_root([raw]), None)


@pytest.mark.needs("kernel")
@given(st.lists(st.binary(max_size=400), max_size=20))
def test_kernel_agrees_on_any_bytes(receipts: list[bytes]) -> None:
    assert_agreement(receipts, compute_ordered_root(receipts), None)


@pytest.mark.needs("kernel")
@given(SEEDS, st.integers(min_value=0, max_value=300), st.sampled_from([0, 1, 31, 40, 300]))
def test_kernel_agrees_on_roots(seed: int, count: int, length_max: int) -> None:
    dice = Random(seed)
    items = [dice.randbytes(dice.randint(0, length_max)) for _ in range(count)]
    assert kernel.compute_ordered_root(items) == compute_ordered_root(items)


@pytest.mark.needs("kernel")
@given(SEEDS, st.integers(min_value=0, max_value=200))
def test_kernel_agrees_on_blooms(seed: int, count: int) -> None:
    dice = Random(seed)
    pool = [draw_log(dice) for _ in range(8)]
    blooms = b"".join(compute_bloom(dice.sample(pool, dice.randrange(4))) for _ in range(count))
    filters = [
        LogFilter(frozenset({log.address}) | {pool[0].address}, tuple(frozenset({topic}) for topic in log.topics))
        for log in pool
    ]
    assert kernel.match_blooms(blooms, [LogFilter(), *filters]) == match_blooms(blooms, [LogFilter(), *filters])


@pytest.mark.needs("kernel", "data")
@pytest.mark.slow
def test_kernel_agrees_on_recorded_blocks(recorded: Sequence[Recorded]) -> None:
    for block in recorded:
        assert_agreement(block.receipts, block.header.receipts_root, block.header.logs_bloom)


@pytest.mark.needs("kernel")
def test_kernel_refuses_lanes_the_machine_has_not() -> None:
    with pytest.raises(ValueError, match="3 lanes"):
        kernel.check_natively(RECEIPTS, ROOT, None, 3)

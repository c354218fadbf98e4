"""What a reader may ask for: refusals first."""

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNotNull, LessThanOrEqual, StringStartsWith

from proofcast.chain.segment import BlockId
from proofcast.errors import InvalidRequest
from proofcast.ethereum.bloom import LogFilter
from proofcast.event import Finality
from proofcast.pipeline.offsets import Offset, parse_offset
from proofcast.pipeline.options import ReadOptions, parse_options
from proofcast.pipeline.pushdown import push_filter

HASH, ADDRESS, OTHER, TOPIC = bytes(range(32)), b"\1" * 20, b"\2" * 20, b"\3" * 32


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "neither or both"),
        ({"source": "x", "journal": "y"}, "neither or both"),
        ({"source": "x", "frist": "1"}, "`frist`"),
        ({"source": "x", "table": "events"}, "`events`"),
        ({"source": "x", "columns": "number,nonsense"}, "`nonsense`"),
        ({"source": "x", "first": "-1"}, "`-1`"),
        ({"source": "x", "first": "٣"}, "`٣`"),
        ({"source": "x", "blocks_per_batch": "0"}, "`0`"),
        ({"source": "x", "finality": "soon"}, "`soon`"),
        ({"source": "x", "trust": "blind"}, "`blind`"),
        ({"source": "x", "checkpoint": "17:0xabc"}, "`17:0xabc`"),
        ({"source": "x", "addresses": "0x1234"}, "`0x1234`"),
        ({"source": "x", "topic0": ADDRESS.hex()}, f"`{ADDRESS.hex()}`"),
        ({"source": "x", "table": "blocks", "addresses": ADDRESS.hex()}, "`blocks`"),
    ],
)
def test_meaningless_option_is_refused(options: dict[str, str], word: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        parse_options(options)
    assert word in str(refusal.value)
    assert refusal.value.hint


@pytest.mark.parametrize("fields", [{}, {"sequence": "1", "number": 2, "hash": ""}, {"sequence": 1, "number": 2}])
def test_foreign_offset_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="no offset"):
        parse_offset(fields)


def test_offset_survives_and_orders() -> None:
    offset = Offset(3, 17, HASH)
    assert parse_offset(offset.encode()) == offset
    assert Offset(0, 99, HASH) < Offset(1, 5, HASH) < Offset(2, 4, HASH)


def test_options_are_read() -> None:
    texts = {
        "path": "blocks/",
        "Table": "changes",
        "columns": "number, step",
        "first": "5",
        "last": "9",
        "finality": "safe",
        "checkpoint": f"9:0x{HASH.hex()}",
        "addresses": f"0x{ADDRESS.hex()},{OTHER.hex()}",
        "topic1": TOPIC.hex(),
    }
    expected = ReadOptions(
        source="blocks/",
        table="changes",
        columns=("number", "step"),
        first=5,
        last=9,
        finality=Finality.SAFE,
        checkpoint=BlockId(9, HASH),
        log_filter=LogFilter(frozenset({ADDRESS, OTHER}), (frozenset(), frozenset({TOPIC}))),
    )
    assert parse_options(texts) == expected


@pytest.mark.parametrize(
    "wanted",
    [
        IsNotNull(("number",)),
        EqualTo(("time",), 5),
        EqualTo(("number",), "five"),
        StringStartsWith(("address",), "0x"),
        EqualTo(("data",), b"x"),
        EqualTo(("address", "part"), ADDRESS),
        EqualTo(("address",), None),
        In(("address",), (ADDRESS, None)),
    ],
)
def test_filter_for_spark_is_left_to_it(wanted: Filter) -> None:
    assert push_filter(ReadOptions("x"), wanted) is None


def test_contradiction_is_left_to_spark() -> None:
    once = push_filter(ReadOptions("x"), EqualTo(("address",), ADDRESS))
    assert once is not None
    assert push_filter(once, EqualTo(("address",), OTHER)) is None


def test_ranges_and_values_are_taken_over() -> None:
    options = ReadOptions("x", first=3, last=20)
    wanted: list[Filter] = [
        GreaterThan(("number",), 7),
        LessThanOrEqual(("number",), 30),
        In(("address",), (ADDRESS, OTHER)),
        EqualTo(("address",), OTHER),
        EqualTo(("topic2",), TOPIC),
    ]
    for one in wanted:
        pushed = push_filter(options, one)
        assert pushed is not None
        options = pushed
    assert (options.first, options.last) == (8, 20)
    assert options.log_filter == LogFilter(frozenset({OTHER}), (None, None, frozenset({TOPIC})))

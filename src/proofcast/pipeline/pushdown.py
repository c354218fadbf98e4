"""Filters of a query that a reader can take over: ranges of numbers, and what logs are wanted."""

from collections.abc import Callable, Collection
from dataclasses import replace

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from proofcast.ethereum.bloom import LogFilter
from proofcast.pipeline.options import ReadOptions
from proofcast.pipeline.schemas import TOPICS, Table

Range = tuple[int | None, int | None]
"""First and last number; None where a filter does not say."""

RANGES: dict[type[Filter], Callable[[int], Range]] = {
    EqualTo: lambda value: (value, value),
    GreaterThan: lambda value: (value + 1, None),
    GreaterThanOrEqual: lambda value: (value, None),
    LessThan: lambda value: (None, value - 1),
    LessThanOrEqual: lambda value: (None, value),
}


def push_filter(options: ReadOptions, wanted: Filter) -> ReadOptions | None:
    """The options with the filter in them; None where Spark has to do it."""
    column: tuple[str, ...] = getattr(wanted, "attribute", ())
    if column == ("number",) and type(wanted) in RANGES:
        return push_range(options, wanted)
    if len(column) == 1 and options.table == Table.LOGS:
        return push_values(options, column[0], list_values(wanted))
    return None


def push_range(options: ReadOptions, wanted: Filter) -> ReadOptions | None:
    value = getattr(wanted, "value", None)
    return options.narrow(*RANGES[type(wanted)](value)) if isinstance(value, int) else None


def list_values(wanted: Filter) -> Collection[object]:
    """What a column may be; nothing where the filter is of another kind."""
    if isinstance(wanted, EqualTo):
        return (wanted.value,)
    return wanted.value if isinstance(wanted, In) else ()


def push_values(options: ReadOptions, column: str, values: Collection[object]) -> ReadOptions | None:
    entries = frozenset(bytes(value) for value in values if isinstance(value, bytes | bytearray))
    before = options.log_filter
    if not entries or len(entries) != len(frozenset(map(repr, values))):
        return None
    if column == "address":
        return narrow(options, before.addresses, entries, lambda both: replace(before, addresses=both))
    if column in TOPICS:
        at = TOPICS.index(column)
        topics = [*before.topics, *([None] * (at + 1 - len(before.topics)))]
        return narrow(options, topics[at], entries, lambda both: build_filter(before, topics, at, both))
    return None


def build_filter(
    before: LogFilter, topics: list[frozenset[bytes] | None], at: int, wanted: frozenset[bytes]
) -> LogFilter:
    return LogFilter(before.addresses, (*topics[:at], wanted, *topics[at + 1 :]))


def narrow(
    options: ReadOptions,
    known: frozenset[bytes] | None,
    wanted: frozenset[bytes],
    build: Callable[[frozenset[bytes]], LogFilter],
) -> ReadOptions | None:
    """Both wishes together; what nothing can fulfil is left to Spark, since an empty set means every value."""
    both = known & wanted if known else wanted
    return replace(options, log_filter=build(both)) if both else None

"""Who wants which event: rows of `events` against many predicates at once.

An event is seen as a predicate sees it: its name is a topic word, and its arguments are attributes. So
`Transfer T/value R 1000 *` wants the transfers of a thousand and more.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame

from proofcast.pipeline.schemas import ARROW, LOG_PLACE, PLACE_COLUMNS, TEXT, Table, convert_schema
from proofcast.routing.attributes import EventAttributes, read_fields
from proofcast.routing.index import MatchingIndex
from proofcast.routing.predicate import parse_predicate

Wanted = Mapping[str, str]
"""Predicates by the name of the subscription."""
EVENT_PLACE = (*PLACE_COLUMNS, *(name for name, _ in LOG_PLACE), "abi", "name")
MATCHES = pa.schema([*(ARROW[Table.EVENTS].field(name) for name in EVENT_PLACE), ("subscriptions", pa.list_(TEXT))])


def match_events(events: DataFrame, wanted: Broadcast[Wanted]) -> DataFrame:
    """The events that somebody wants, and who; every worker makes the index once."""

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (match_batch(batch, wanted.value) for batch in batches)

    read = events.filter("fault IS NULL").select(*EVENT_PLACE, "arguments")
    return read.mapInArrow(match, convert_schema(MATCHES))


def match_batch(events: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
    names, index = build_index(tuple(wanted.items()))
    found = index.match_many(
        [
            describe(name, dict(arguments))
            for name, arguments in zip(events["name"].to_pylist(), events["arguments"].to_pylist(), strict=True)
        ]
    )
    kept = events.drop_columns(["arguments"]).filter(pa.array([bool(ids) for ids in found], pa.bool_()))
    subscriptions = pa.array([[names[place] for place in ids] for ids in found if ids], MATCHES.field(-1).type)
    return pa.RecordBatch.from_arrays([*kept.columns, subscriptions], schema=MATCHES)


def describe(name: str, arguments: Mapping[str, str]) -> EventAttributes:
    return read_fields([name], arguments)


@lru_cache(maxsize=1)
def build_index(wanted: tuple[tuple[str, str], ...]) -> tuple[list[str], MatchingIndex]:
    """The names of the subscriptions by their place, and the index of their predicates."""
    index = MatchingIndex()
    index.add_many({place: parse_predicate(text) for place, (_, text) in enumerate(wanted)})
    return [name for name, _ in wanted], index

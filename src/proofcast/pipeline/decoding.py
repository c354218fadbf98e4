"""Logs by an ABI: from rows of `logs` to rows of `events`.

A value is text as a person reads it: decimal numbers, 0x and hexadecimal digits, lists as JSON. A log that has an
event's first topic and yet does not decode by it (anyone may emit anything) gives a row whose `fault` says why.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from proofcast.errors import InvalidInput
from proofcast.ethereum.abi import EventAbi, Value, decode_log, format_value
from proofcast.ethereum.bloom import LogFilter
from proofcast.ethereum.receipt import Log
from proofcast.onchain.outcome import parse_outcomes
from proofcast.pipeline.rows import select_logs
from proofcast.pipeline.schemas import ARROW, LOG_PLACE, PLACE_COLUMNS, TOPICS, Table, get_spark_schema

OWN_ABI = "proofcast"
"""The name under which events of our own contracts are decoded."""


@dataclass(frozen=True, slots=True)
class Abi:
    """Events to decode, under the name that their rows carry."""

    name: str
    events: tuple[EventAbi, ...]
    addresses: frozenset[bytes] = frozenset()
    """Of these contracts alone; empty for every one. Anonymous events are only decoded where some are named."""

    @property
    def topics(self) -> frozenset[bytes]:
        return frozenset(event.topic0 for event in self.events if event.topic0 is not None)

    @property
    def takes_anonymous(self) -> bool:
        return bool(self.addresses) and any(event.is_anonymous for event in self.events)


def decode_logs(logs: DataFrame, abi: Abi) -> DataFrame:
    """The events among the logs."""
    wanted = logs.filter(build_condition(abi)).select(*ARROW[Table.LOGS].names)

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (decode_batch(batch, abi) for batch in batches)

    return wanted.mapInArrow(decode, get_spark_schema(Table.EVENTS))


def build_condition(abi: Abi) -> Column:
    """What a log must have to be looked at; in Spark, so that no other log leaves it."""
    topics = sql.lit(True) if abi.takes_anonymous else sql.col("topic0").isin(sorted(abi.topics))
    return topics & sql.col("address").isin(sorted(abi.addresses)) if abi.addresses else topics


def decode_all(logs: pa.RecordBatch, abis: Sequence[Abi]) -> pa.RecordBatch:
    """The events among the logs by each ABI, as `decode_logs` finds them."""
    found = [decode_batch(select_logs(logs, build_filter(abi)), abi) for abi in abis]
    return pa.concat_batches(found) if found else pa.RecordBatch.from_pylist([], schema=ARROW[Table.EVENTS])


def build_filter(abi: Abi) -> LogFilter:
    """The same as `build_condition`."""
    return LogFilter(abi.addresses, () if abi.takes_anonymous else (abi.topics,))


def decode_batch(logs: pa.RecordBatch, abi: Abi) -> pa.RecordBatch:
    columns = [logs[name].to_pylist() for name in ("address", *TOPICS, "data")]
    parsed = [
        Log(address, tuple(topic for topic in topics if topic is not None), data)
        for address, *topics, data in zip(*columns, strict=True)
    ]
    # Found by the first topic and their number alone, so once for each kind of log.
    kinds = {(log.topics[:1], len(log.topics)): log for log in parsed}
    events = {kind: find_event(log, abi) for kind, log in kinds.items()}
    found = [events[log.topics[:1], len(log.topics)] for log in parsed]
    kept = logs.filter(pa.array([event is not None for event in found], pa.bool_()))
    decoded = [describe(event, log, abi.name) for event, log in zip(found, parsed, strict=True) if event]
    places = [kept[name] for name in (*PLACE_COLUMNS, *(name for name, _ in LOG_PLACE))]
    fields = ARROW[Table.EVENTS].names[len(places) :]
    values = [pa.array([row[name] for row in decoded], ARROW[Table.EVENTS].field(name).type) for name in fields]
    return pa.RecordBatch.from_arrays([*places, *values], schema=ARROW[Table.EVENTS])


def find_event(log: Log, abi: Abi) -> EventAbi | None:
    """The event that the log is; else one that it claims to be; None where it is of another kind."""
    exact = next((event for event in abi.events if not event.is_anonymous and event.matches(log)), None)
    topic0 = log.topics[0] if log.topics else None
    claimed = (event for event in abi.events if topic0 is not None and event.topic0 == topic0)
    return exact or next(claimed, None) or find_anonymous(log, abi)


def find_anonymous(log: Log, abi: Abi) -> EventAbi | None:
    fitting = (event for event in abi.events if event.is_anonymous and event.matches(log))
    return next(fitting, None) if abi.takes_anonymous else None


def describe(event: EventAbi, log: Log, abi_name: str) -> dict[str, object]:
    row: dict[str, object] = {"abi": abi_name, "name": event.name, "signature": event.signature}
    try:
        values = decode_log(event, log)
        return row | {"arguments": list(format_arguments(values, event, abi_name).items()), "fault": None}
    except InvalidInput as error:
        return row | {"arguments": None, "fault": str(error)}


def format_arguments(values: Mapping[str, Value], event: EventAbi, abi_name: str) -> dict[str, str]:
    texts = {name: format_value(value) for name, value in values.items()}
    if abi_name == OWN_ABI:
        texts |= {
            name: READABLE[event.name, name](value)
            for name, value in values.items()
            if (event.name, name) in READABLE and isinstance(value, bytes)
        }
    return texts


def format_outcomes(outcomes: bytes) -> str:
    return json.dumps([outcome.name.lower() for outcome in parse_outcomes(outcomes)])


def format_routing_key(key: bytes) -> str:
    """As it was written; an expression, which travels as an automaton, as its bytes."""
    return key.decode() if key.isascii() and key.decode().isprintable() else format_value(key)


READABLE: Mapping[tuple[str, str], Callable[[bytes], str]] = {
    ("Delivered", "outcomes"): format_outcomes,
    ("Handed", "outcomes"): format_outcomes,
    ("Routed", "key"): format_routing_key,
}
"""What our own contracts log as bytes and a person reads otherwise."""

"""`proofcast match`: which of these subscriptions does each of these events match, and why?"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO

import click

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.routing.attributes import EventAttributes, Json, parse_attributes, parse_json_attributes
from proofcast.routing.explanation import explain
from proofcast.routing.index import MatchingIndex
from proofcast.routing.predicate import Predicate, matches, parse_predicate

EVENTS_AT_ONCE = 1000
"""Matched in one call: enough for the index to work at full speed, few enough that a pipe is answered soon."""

Name = str | int
"""What a line is called: its `id`, else its number."""
Record = Mapping[str, Json]


@click.command()
@click.option("--subscriptions", type=click.File(), required=True, help='Lines like {"id": 1, "predicate": "surf T"}.')
@click.option("--events", type=click.File(), required=True, help='Lines like {"id": 1, "attributes": {"surf": true}}.')
@click.option("--why", metavar="ID", help="Say of this one subscription why each event does or does not match.")
def match(subscriptions: IO[str], events: IO[str], why: str | None) -> None:
    """Print a line of JSON for each event, with the subscriptions that it matches.

    Files hold one JSON object per line; `-` reads from standard input. An event's attributes are its `attributes`, or
    the whole object where it has none of that name: `true` is a topic word, a list of two an interval.
    """
    predicates = dict(read_subscriptions(subscriptions))
    happened = read_events(events)
    records = explain_events(predicates, happened, why) if why is not None else match_events(predicates, happened)
    for record in records:
        click.echo(json.dumps(record))


def match_events(
    predicates: Mapping[Name, Predicate], events: Iterator[tuple[Name, EventAttributes]]
) -> Iterator[dict[str, object]]:
    names, index = list(predicates), MatchingIndex()
    index.add_many(dict(enumerate(predicates.values())))
    while batch := list(islice(events, EVENTS_AT_ONCE)):
        found = index.match_many([attributes for _, attributes in batch])
        for (name, _), places in zip(batch, found, strict=True):
            yield {"event": name, "subscriptions": [names[place] for place in places]}


def explain_events(
    predicates: Mapping[Name, Predicate], events: Iterator[tuple[Name, EventAttributes]], wanted: str
) -> Iterator[dict[str, object]]:
    named = [(name, predicate) for name, predicate in predicates.items() if str(name) == wanted]
    if not named:
        message = f"no subscription is called `{wanted}`"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="write the `id` of a line of the subscriptions")
    for event, attributes in events:
        for name, predicate in named:
            answer = {"event": event, "subscription": name, "matches": matches(predicate, attributes)}
            yield {**answer, "because": explain(predicate, attributes)}


def load_subscriptions(path: Path) -> dict[Name, Predicate]:
    """From a file, or standard input for `-`."""
    try:
        with click.open_file(str(path)) as file:
            return dict(read_subscriptions(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, f"the file `{path}` cannot be read (`{error}`)", hint="check its name and permissions"
        ) from error


def read_subscriptions(file: IO[str]) -> Iterator[tuple[Name, Predicate]]:
    seen: set[Name] = set()
    for number, record in read_records(file):
        name = get_name(file, number, record)
        if name in seen:
            raise refuse_line(file, number, f"the id `{name}` is taken", "give each subscription an id of its own")
        text = record.get("predicate")
        if not isinstance(text, str):
            raise refuse_line(file, number, "there is no `predicate`", 'write e.g. {"id": 1, "predicate": "surf T"}')
        try:
            predicate = parse_predicate(text)
        except InvalidRequest as error:
            raise refuse_line(file, number, str(error), error.hint) from None
        seen.add(name)
        yield name, predicate


def read_events(file: IO[str]) -> Iterator[tuple[Name, EventAttributes]]:
    for number, record in read_records(file):
        name = get_name(file, number, record)
        try:
            yield name, parse_event(record)
        except InvalidRequest as error:
            raise refuse_line(file, number, str(error), error.hint) from None


def parse_event(record: Record) -> EventAttributes:
    content = record.get("attributes", record)
    if isinstance(content, str):
        return parse_attributes(content)
    if isinstance(content, Mapping):
        return parse_json_attributes(content)
    raise InvalidRequest(Reason.BAD_ARGUMENT, f"`attributes` holds `{content}`", hint="write an object or a text")


def read_records(file: IO[str]) -> Iterator[tuple[int, Record]]:
    """The objects of the lines with their numbers; blank lines are passed over."""
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield number, parse_record(file, number, line)


def parse_record(file: IO[str], number: int, line: str) -> Record:
    try:
        record = json.loads(line, parse_float=Decimal)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise refuse_line(file, number, f"`{line.strip():.40}` is no JSON object", "write one object on each line")
    return record


def get_name(file: IO[str], number: int, record: Record) -> Name:
    name = record.get("id", number)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise refuse_line(file, number, f"the id `{name}` is neither text nor integer", "write e.g. `1` or `alice`")
    return name


def refuse_line(file: IO[str], number: int, message: str, hint: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, f"line {number} of `{file.name}`: {message}", hint=hint)

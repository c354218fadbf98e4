"""`proofcast event`: follow events as they come, and check the evidence of one by yourself."""

import json
import re
from pathlib import Path

import click

from proofcast.chain.evidence import verify_evidence
from proofcast.cli.output import emit, format_record, note
from proofcast.cli.values import refuse
from proofcast.client.io.http import Client
from proofcast.cloudevents import compute_id
from proofcast.event import Event, Finality
from proofcast.onchain.events import Published, find_event

HASH = re.compile(r"0x[0-9a-fA-F]{64}")
BROKERS = click.option(
    "--broker",
    "brokers",
    multiple=True,
    default=["http://127.0.0.1:8080"],
    show_default=True,
    help="Address of a broker; several are asked in turn.",
)


@click.group()
def event() -> None:
    """Follow events, and check evidence of one without trusting anybody."""


@event.command()
@click.argument("topic", default="")
@click.option(
    "--broker", "brokers", multiple=True, default=["http://127.0.0.1:8080"], show_default=True, help="Repeat."
)
@click.option("--start", default="newest", show_default=True, help="`oldest`, `block:N`, `time:...` or a cursor.")
@click.option("--finality", type=click.Choice([level.value for level in Finality]), default="latest", show_default=True)
@click.option("--contract", default="", help="Raw logs of this contract instead of a topic's events.")
@click.option("--count", type=click.IntRange(min=1), help="End after so many.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each.")
def tail(
    topic: str,
    brokers: tuple[str, ...],
    start: str,
    finality: str,
    contract: str,
    count: int | None,
    as_json: bool,
) -> None:
    """Print the events of a TOPIC, given by id or by name with `*` and `?`, as they come and as they are undone."""
    with Client(brokers) as client:
        subscription = client.subscribe(topic, start=start, finality=finality, contract=contract)
        for number, found in enumerate(subscription, start=1):
            emit(as_json, describe(found) | {"cursor": subscription.cursor}, format_line(found))
            if number == count:
                return


@event.command()
@click.argument("event_id", metavar="ID")
@click.argument("file", type=click.Path(path_type=Path))
@BROKERS
def evidence(event_id: str, file: Path, brokers: tuple[str, ...]) -> None:
    """Write the evidence of the event ID, as `event tail --json` shows it, into FILE; `event verify` checks it."""
    with Client(brokers) as client:
        found = client.get_evidence(event_id)
    file.write_bytes(found)
    note(f"{len(found)} bytes in {file}; check them with `proofcast event verify {file} --trust HASH`")


def describe(found: Event) -> dict[str, object]:
    return {
        "id": compute_id(found, 1),
        "step": str(found.step),
        "topic": found.topic,
        "sequence": found.sequence,
        "key": found.key,
        "publisher": found.publisher,
        "payload": found.payload,
        "block": found.position.block_number,
        "block_hash": found.position.block_hash,
        "log_index": found.position.log_index,
        "time": found.timestamp,
        "trust": found.trust,
    }


def format_line(found: Event) -> str:
    at = found.position
    place = f"block {at.block_number} 0x{at.block_hash[:4].hex()}.. log {at.log_index}"
    return f"{found.step:5} {found.sequence:>8}  {place}  {show_payload(found.payload)}"


def show_payload(payload: bytes) -> str:
    """As text where it is some, else as digits; on one line."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return f"0x{payload.hex()}"
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else f"0x{payload.hex()}"


@event.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--trust", "trusted", required=True, metavar="HASH", help="Hash of a block that you trust.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(file: Path, trusted: str, as_json: bool) -> None:
    """Check the evidence in FILE, offline: does it lead from the block you trust to a log?"""
    if not HASH.fullmatch(trusted):
        raise refuse(f"`{trusted}` is no block hash", "write 0x and 64 hexadecimal digits")
    proven = verify_evidence(file.read_bytes(), bytes.fromhex(trusted[2:]))
    found = find_event(proven.log.topics, proven.log.data)
    published = found if isinstance(found, Published) else None
    record: dict[str, object] = {
        "proven": "this log is in this block, an ancestor of the block you trust or that block itself",
        "contract": proven.log.address,
        "block": proven.header.number,
        "block_hash": proven.block_hash,
        "transaction_index": proven.transaction_index,
        "transaction_hash": proven.transaction_hash,
        "log_position": proven.log_position,
        "topics": proven.log.topics,
        "data": proven.log.data,
        "claimed_trust": str(proven.claimed_trust),
        "publication": published,
    }
    emit(as_json, record, format_record({name: show(value) for name, value in record.items()}))


def show(value: object) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, tuple):
        return " ".join(map(show, value))
    if isinstance(value, Published):
        return f"event {value.sequence} of topic {show(value.topic)}: {show_payload(value.payload)}"
    return "-" if value is None else str(value)

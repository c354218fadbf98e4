"""Events from brokers, checked here: `tail`, `show`, `evidence`."""

from pathlib import Path

import click

from proofcast.chain.evidence import parse_evidence, verify_evidence
from proofcast.cli.broker_options import BROKERS
from proofcast.cli.event.verifying import describe_proven, show, show_payload
from proofcast.cli.output import emit, format_record, note
from proofcast.cli.values import ADDRESS, refuse
from proofcast.client.io.http import Client
from proofcast.client.values import HASH_LENGTH, is_hex, parse_hex
from proofcast.cloudevents import Delivery, compute_id
from proofcast.event import Event, Finality
from proofcast.routing.automaton import VERSION as EXPRESSION

TRUST = click.option("--trust", default="", metavar="HASH", help="Hash of a block that you trust.")


@click.command()
@click.argument("topic", default="")
@BROKERS
@click.option(
    "--start", default="newest", show_default=True, help="`oldest`, `block:N`, `sequence:N`, `time:...`, a cursor."
)
@click.option("--finality", type=click.Choice([level.value for level in Finality]), default="latest", show_default=True)
@click.option("--contract", default="", help="Raw logs of this contract instead of a topic's events.")
@click.option("--where", default="", help="Predicate over the payload's fields, e.g. `delay R 30 *`.")
@click.option("--key", default="", help="Routing key that must mean the event's, e.g. `colour-bl*`.")
@click.option("--topics", type=ADDRESS, help="`Topics`, where it is not at its usual address.")
@TRUST
@click.option("--no-verify", is_flag=True, help="Believe the broker.")
@click.option("--count", type=click.IntRange(min=1), help="End after so many.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each.")
def tail(
    topic: str,
    brokers: tuple[str, ...],
    start: str,
    finality: str,
    contract: str,
    where: str,
    key: str,
    topics: bytes | None,
    trust: str,
    no_verify: bool,
    count: int | None,
    as_json: bool,
) -> None:
    """Print the events of a TOPIC, given by id or by name with `*` and `?`, as they come and as they are undone.

    `exchange/NAME` stands for the messages of an exchange, `queue/NAME` for those that reached a queue.
    Every event is verified; its trust is `trusted` up to the block you name, `linked` to it beyond.
    """
    address = "" if topics is None else f"0x{topics.hex()}"
    with Client(brokers, topics=address) as client:
        subscription = client.subscribe(
            topic,
            start=start,
            finality=finality,
            contract=contract,
            where=where,
            key=key,
            verify=not no_verify,
            trust=trust,
        )
        note(f"from {start} on, at finality {finality}")
        for number, found in enumerate(subscription, start=1):
            emit(as_json, describe(subscription.delivery), format_line(found))
            if number == count:
                return


@click.command()
@click.argument("event_id", metavar="ID")
@click.argument("file", type=click.Path(path_type=Path))
@BROKERS
@TRUST
def evidence(event_id: str, file: Path, brokers: tuple[str, ...], trust: str) -> None:
    """Write the evidence of the event ID, as `event tail --json` shows it, into FILE; `event verify` checks it."""
    with Client(brokers) as client:
        found = client.get_evidence(event_id, trust)
    file.write_bytes(found)
    note(f"{len(found)} bytes in {file}; check them with `proofcast event verify {file} --trust {trust or 'HASH'}`")


@click.command("show")
@click.argument("event_id", metavar="ID")
@BROKERS
@TRUST
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_event(event_id: str, brokers: tuple[str, ...], trust: str, as_json: bool) -> None:
    """Show the event ID, proven to be in the block that its id names, or in an ancestor of one that you trust."""
    block_hash = f"0x{event_id.split('/')[3]}" if event_id.count("/") > 3 else ""
    if not is_hex(block_hash):
        raise refuse(f"`{event_id}` is no event's id", "write it as `proofcast event tail --json` shows it")
    with Client(brokers) as client:
        data = client.get_evidence(event_id, trust)
    proven = verify_evidence(data, parse_hex("block hash", trust or block_hash, HASH_LENGTH))
    record = {"id": event_id} | describe_proven(proven, len(parse_evidence(data).headers))
    emit(as_json, record, format_record({name: show(value) for name, value in record.items()}))


def describe(delivery: Delivery) -> dict[str, object]:
    found = delivery.event
    return {
        "id": compute_id(found, delivery.turn),
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
        "cursor": delivery.cursor,
    }


def format_line(found: Event) -> str:
    at = found.position
    place = f"block {at.block_number} 0x{at.block_hash[:4].hex()}.. log {at.log_index}"
    key = f"{show_key(found.key)}  " if found.key and found.sequence else ""
    return f"{found.step:5} {found.sequence:>8}  {place}  {key}{show_payload(found.payload)}"


def show_key(key: bytes) -> str:
    """A routing key as it was written, a key of 32 bytes by its first ones, an expression by its kind."""
    if key.isascii() and key.decode().isprintable():
        return key.decode()
    return "(expression)" if key[0] == EXPRESSION and len(key) != HASH_LENGTH else f"0x{key[:4].hex()}.."

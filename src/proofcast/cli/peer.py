"""`proofcast peer`: a peer of the overlay on this machine, and commands for it."""

import base64
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import click

from proofcast.cli.output import emit, format_record, format_table, note
from proofcast.cli.peer_options import STATE_OPTION
from proofcast.cli.values import ADDRESS, TOPIC
from proofcast.client.checking import Wanted
from proofcast.client.values import HASH_LENGTH, parse_hex
from proofcast.cloudevents import parse_structured
from proofcast.errors import InvalidInput, Reason, Unavailable
from proofcast.event import Event
from proofcast.gateway.envelope import is_envelope, parse_envelope
from proofcast.gateway.signed import verify_signed
from proofcast.gateway.witness import Witness
from proofcast.onchain.io.artefacts import get_contracts
from proofcast.overlay.io.control import ask, watch
from proofcast.overlay.io.options import SOCKET_NAME, PeerOptions
from proofcast.routing.attributes import parse_attributes
from proofcast.routing.predicate import matches, parse_predicate

JSON_FLAG = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def peer() -> None:
    """Run a peer of the serverless overlay and use it."""


@peer.command()
@STATE_OPTION
@click.option("--listen", default="/ip4/127.0.0.1/tcp/0", show_default=True, help="Multiaddress to listen on.")
@click.option("--bootstrap", multiple=True, help="Address of a peer that is there; may be given several times.")
@click.option("--announce", help="Address others should dial, e.g. of a forwarded port.")
@click.option("--region", default="", help="Where this peer is, for multicast groups.")
@click.option("--capacity", type=click.IntRange(0), default=0, help="How many group members it would serve.")
@click.option(
    "--kad-protocol",
    default="/proofcast/kad/1.0.0",
    show_default=True,
    help="Of libp2p's Kademlia; `/ipfs/lan/kad/1.0.0` enters the LAN table of kubo.",
)
def start(
    state: Path,
    listen: str,
    bootstrap: tuple[str, ...],
    announce: str | None,
    region: str,
    capacity: int,
    kad_protocol: str,
) -> None:
    """Run a peer until Ctrl-C; prints its address as JSON once it listens."""
    if find_spec("libp2p") is None:
        message = "libp2p is not installed"
        raise Unavailable(Reason.TOOL_MISSING, message, hint="`pip install 'proofcast[overlay]'`")
    options = PeerOptions(state, listen, bootstrap, announce, region, capacity, kad_protocol)
    os.execv(sys.executable, [sys.executable, "-m", "proofcast.overlay.io.daemon", options.encode()])


@peer.command()
@STATE_OPTION
@click.option(
    "--past", "past_s", type=click.FloatRange(0), default=0.0, help="Also events of the last so many seconds."
)
@click.option("--count", type=click.IntRange(0), help="End after so many events; 0 only subscribes.")
@click.option("--trust", default="", metavar="HASH", help="Hash of a block that you trust: check what gateways carry.")
@click.option("--topic", type=TOPIC, help="Only carried events of this topic; with `--trust`.")
@click.option("--topics", type=ADDRESS, help="`Topics`, where it is not at its usual address; with `--trust`.")
@JSON_FLAG
@click.argument("predicate")
def subscribe(
    state: Path,
    past_s: float,
    count: int | None,
    trust: str,
    topic: bytes | None,
    topics: bytes | None,
    as_json: bool,
    predicate: str,
) -> None:
    """Subscribe to what matches PREDICATE, e.g. `surf T/price R 1000 1500`, and print the events as they come.

    With `--trust` only events of a chain are printed that a gateway carried and that are proven by a block you trust.
    """
    wanted = parse_predicate(predicate)
    trusted = parse_hex("trust", trust, HASH_LENGTH)
    witness = Witness(trusted, Wanted(contract=get_contracts(topics).topics, topic=topic or b"")) if trusted else None
    answer = ask(state / SOCKET_NAME, {"do": "subscribe", "predicate": predicate, "past_s": past_s})
    note(f"subscribed to {answer['predicate']}" + ("" if answer["active"] else ", but the path is not confirmed yet"))
    printed = 0
    if count == 0:
        return
    for event in watch(state / SOCKET_NAME):
        if matches(wanted, parse_attributes(event["attributes"])):
            printed += show_event(event, witness, as_json)
            if printed == count:
                return


def show_event(event: dict[str, object], witness: Witness | None, as_json: bool) -> bool:
    """Print it, unless it is to be proven and is not."""
    payload = base64.b64decode(str(event["payload"]))
    if witness is None:
        emit(as_json, event, f"{event['attributes']}  {describe_payload(payload)}".rstrip())
        return True
    try:
        proven = witness.verify(payload)
    except InvalidInput as error:
        note(f"refused `{event['event']}`: {error} ({error.hint})")
        return False
    emit(as_json, event | {"proven": describe_proven(proven)}, f"{proven.trust}  {event['attributes']}  {show(proven)}")
    return True


def describe_payload(payload: bytes) -> str:
    if not is_envelope(payload):
        return payload.decode(errors="replace")
    carried = parse_structured(parse_envelope(payload).event).event
    return f"{show(carried)} (carried from {carried.source}, not checked: give `--trust`)"


def show(carried: Event) -> str:
    return f"{carried.step} {carried.sequence}  {carried.payload.decode(errors='replace')}"


def describe_proven(proven: Event) -> dict[str, object]:
    return {
        "trust": str(proven.trust),
        "step": str(proven.step),
        "source": proven.source,
        "topic": proven.topic,
        "sequence": proven.sequence,
        "publisher": proven.publisher,
        "block": proven.position.block_number,
        "block_hash": proven.position.block_hash,
        "payload": proven.payload,
    }


@peer.command()
@JSON_FLAG
@click.argument("file", type=click.File("rb"))
def verify(file: IO[bytes], as_json: bool) -> None:
    """Check that FILE, a payload as `proofcast gateway to-topic` published it, is signed by the peer it names."""
    event = verify_signed(file.read())
    record = {
        "peer": f"0x{event.id.publisher.hex()}",
        "attributes": str(event.attributes),
        "payload": event.payload.decode(errors="replace"),
    }
    emit(as_json, record, format_record(record))


@peer.command()
@STATE_OPTION
@JSON_FLAG
@click.argument("predicate")
def unsubscribe(state: Path, as_json: bool, predicate: str) -> None:
    """Take a subscription back."""
    answer = ask(state / SOCKET_NAME, {"do": "unsubscribe", "predicate": predicate})
    emit(as_json, answer, f"unsubscribed from {answer['predicate']}")


@peer.command()
@STATE_OPTION
@JSON_FLAG
@click.option("--payload", default="", help="Text that travels with the event.")
@click.argument("attributes")
def publish(state: Path, as_json: bool, payload: str, attributes: str) -> None:
    """Publish an event with ATTRIBUTES, e.g. `surf T/price V 1050`, and wait until every rendezvous has it."""
    encoded = base64.b64encode(payload.encode()).decode()
    answer = ask(state / SOCKET_NAME, {"do": "publish", "attributes": attributes, "payload": encoded})
    if not answer["accepted"]:
        message = f"the event `{answer['event']}` is not yet accepted by every rendezvous"
        raise Unavailable(Reason.NOT_YET, message, hint="the peer goes on trying; `proofcast peer status` shows it")
    emit(as_json, answer, answer["event"])


@peer.command()
@STATE_OPTION
@JSON_FLAG
def status(state: Path, as_json: bool) -> None:
    """Show who the peer is, whom it knows, and what it has refused."""
    answer = ask(state / SOCKET_NAME, {"do": "status"})
    rows = [(name.replace("_", " "), str(value)) for name, value in answer.items() if name != "neighbours"]
    neighbours = [(one["peer"], one["address"], str(one["messages_left"])) for one in answer["neighbours"]]
    table = format_table([("neighbour", "address", "messages left"), *neighbours])
    width = max(len(name) for name, _ in rows)
    text = "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)
    emit(as_json, answer, f"{text}\n\n{table}" if neighbours else text)

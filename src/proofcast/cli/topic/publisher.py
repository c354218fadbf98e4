"""What a publisher does: publish, deliver further pages, seal."""

from pathlib import Path

import click

from proofcast.cli.connection import Settings, open_sender
from proofcast.cli.output import emit
from proofcast.cli.topic.fields import encode_assignments
from proofcast.cli.topic.sending import describe_delivery, describe_receipt, format_delivery
from proofcast.cli.values import ADDRESS, KEY, TOPIC, encode_words, parse_hex, refuse
from proofcast.onchain import lens, topics
from proofcast.onchain.deployment import Contracts
from proofcast.onchain.events import Sealed
from proofcast.onchain.io import publishing
from proofcast.onchain.io.reading import find_creation_block, find_payload_type, read
from proofcast.onchain.io.sender import Sender
from proofcast.onchain.payload import parse_payload_type
from proofcast.onchain.request import ask


def read_payload(text: str | None, as_hex: str | None, file: Path | None) -> bytes:
    """The payload, from the one place that was named."""
    given = [source for source in (text, as_hex, file) if source is not None]
    if len(given) != 1:
        raise refuse(f"`{len(given)}` payloads were given", "give one: PAYLOAD, `--hex` or `--file`")
    if file is not None:
        return read_file(file)
    return parse_hex(as_hex) if as_hex is not None else encode_words(str(text))


def read_file(file: Path) -> bytes:
    """A file, or standard input for `-`."""
    try:
        with click.open_file(str(file), "rb") as source:
            return bytes(source.read())
    except OSError as error:
        raise refuse(
            f"the file `{file}` cannot be read (`{error.strerror}`)", "check its name and permissions"
        ) from None


def encode_named(sender: Sender, contracts: Contracts, topic: bytes, assignments: tuple[str, ...]) -> bytes:
    """The payload in which each `name=value` is so, by the type that the topic's owner declared."""
    read(sender.rpc, contracts.lens, lens.get_topic(topic))
    first = find_creation_block(sender.rpc, contracts.topics)
    payload_type = find_payload_type(sender.rpc, contracts.topics, topic, first)
    if not payload_type:
        raise refuse(
            "the topic declares no payload type",
            "its owner declares one by `proofcast topic payload-type`; or give PAYLOAD",
        )
    return encode_assignments(parse_payload_type(payload_type), assignments)


@click.command()
@click.argument("topic", type=TOPIC)
@click.argument("payload", required=False)
@click.option("--hex", "as_hex", help="Payload as hexadecimal digits.")
@click.option("--file", type=click.Path(path_type=Path), help="Payload from a file; `-` for standard input.")
@click.option(
    "--field", "fields", multiple=True, metavar="NAME=VALUE", help="Repeatable; a field of the topic's payload type."
)
@click.option("--key", type=KEY, help="Routing key: 32 bytes as hex, or a text to be hashed.")
@click.option("--expect", "expected", type=int, default=0, help="Number that the event must get.")
@click.option("--payee", type=ADDRESS, help="Who is credited; else your own account.")
@click.pass_obj
def publish(
    settings: Settings,
    topic: bytes,
    payload: str | None,
    as_hex: str | None,
    file: Path | None,
    fields: tuple[str, ...],
    key: bytes | None,
    expected: int,
    payee: bytes | None,
) -> None:
    """Publish PAYLOAD, a text, in a topic: its subscribers are called in the same transaction."""
    if fields and (payload, as_hex, file) != (None, None, None):
        raise refuse("a payload and its fields were given", "give one: PAYLOAD, `--hex`, `--file` or fields")
    whole = None if fields else read_payload(payload, as_hex, file)
    with open_sender(settings) as (sender, contracts):
        content = encode_named(sender, contracts, topic, fields) if whole is None else whole
        receipt = publishing.publish(
            sender,
            contracts,
            topic,
            content,
            idempotency_key=settings.get_key(),
            key=key or topics.NO_KEY,
            expected=expected,
            payee=payee or sender.address,
        )
    emit(settings.as_json, describe_delivery(receipt, contracts.topics), format_delivery(receipt, contracts.topics))


@click.command()
@click.argument("topic", type=TOPIC)
@click.option("--payee", type=ADDRESS, help="Who is credited the gas of this page; else your own account.")
@click.pass_obj
def deliver(settings: Settings, topic: bytes, payee: bytes | None) -> None:
    """Deliver the next page of an event that did not fit one transaction; anybody may, and is paid for it."""
    with open_sender(settings) as (sender, contracts):
        receipt = publishing.deliver(
            sender, contracts, topic, idempotency_key=settings.get_key(), payee=payee or sender.address
        )
    emit(settings.as_json, describe_delivery(receipt, contracts.topics), format_delivery(receipt, contracts.topics))


@click.command()
@click.argument("topic", type=TOPIC)
@click.pass_obj
def seal(settings: Settings, topic: bytes) -> None:
    """Move subscriptions from storage into code, so that events cost less; anybody may."""
    with open_sender(settings) as (sender, contracts):
        receipt = sender.send(ask(contracts.topics, topics.seal(topic)), settings.get_key())
    sealed = receipt.get_event(contracts.topics, Sealed)
    record = {
        "topic": topic,
        "first": sealed.first,
        "end": sealed.end,
        "page": sealed.page,
        **describe_receipt(receipt),
    }
    emit(settings.as_json, record, f"sealed the subscriptions {sealed.first} to {sealed.end - 1}")

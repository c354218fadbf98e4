"""`proofcast gateway`: events of a broker into the overlay, events of the overlay onto a topic."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from proofcast.cli.broker_options import BROKERS
from proofcast.cli.connection import NODE_OPTIONS, SENDER_OPTIONS, Settings, open_sender
from proofcast.cli.output import emit, note
from proofcast.cli.peer_options import STATE_OPTION
from proofcast.cli.values import ADDRESS, TOPIC, refuse
from proofcast.client.checking import Wanted
from proofcast.client.io.http import Client
from proofcast.client.values import HASH_LENGTH, TOPIC_LENGTH, is_hex, parse_hex
from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Finality
from proofcast.gateway.io.carrying import Carriage, carry
from proofcast.gateway.io.landing import land
from proofcast.onchain.io.artefacts import get_contracts
from proofcast.pipeline.io.lock import held
from proofcast.routing.predicate import parse_predicate

COUNT = click.option("--count", type=click.IntRange(min=1), help="End after so many.")


@click.group()
def gateway() -> None:
    """Carry events between brokers, chains and the serverless overlay, with what proves them."""


@gateway.command("from-broker")
@click.argument("topic")
@STATE_OPTION
@BROKERS
@click.option("--word", help="Topic word in the overlay; else TOPIC.")
@click.option(
    "--start",
    default="newest",
    show_default=True,
    help="Of the first run: `oldest`, `block:N`, `sequence:N`...",
)
@click.option(
    "--finality", type=click.Choice([level.value for level in Finality]), default="finalized", show_default=True
)
@click.option("--trust", default="", metavar="HASH", help="Hash of a block that you trust.")
@click.option("--topics", type=ADDRESS, help="`Topics`, where it is not at its usual address.")
@COUNT
def from_broker(
    topic: str,
    state: Path,
    brokers: tuple[str, ...],
    word: str | None,
    start: str,
    finality: str,
    trust: str,
    topics: bytes | None,
    count: int | None,
) -> None:
    """Publish the events of TOPIC, by id or name, by the peer that runs in the folder; each once, whatever dies.

    A payload that is a JSON object gives the event attributes: `flights T/delay V 45`.
    """
    if word is None and any(sign in topic for sign in "*?"):
        raise refuse(f"`{topic}` stands for many topics", "say with `--word` what they are in the overlay")
    wanted = Wanted(
        contract=get_contracts(topics).topics, topic=parse_hex("topic", topic, TOPIC_LENGTH) if is_hex(topic) else b""
    )
    hash_ = parse_hex("trust", trust, HASH_LENGTH)
    carriage = Carriage(state, topic, word or topic, wanted, start, finality, hash_)
    with alone(state), Client(brokers) as client:
        for number, event_id in enumerate(carry(client, carriage, note), start=1):
            click.echo(event_id)
            if number == count:
                return


@contextmanager
def alone(state: Path) -> Iterator[None]:
    """A second gateway on one outbox would only repeat what the first does."""
    try:
        with held(str(state / "gateway")):
            yield
    except InvalidRequest as error:
        if error.reason is not Reason.FENCED:
            raise
        message = f"another gateway runs on the folder `{state}`"
        raise InvalidRequest(Reason.FENCED, message, hint="end it, or use another peer with `--state`") from error


@gateway.command("to-topic")
@click.argument("predicate")
@click.argument("topic", type=TOPIC)
@STATE_OPTION
@COUNT
@click.pass_obj
def to_topic(settings: Settings, predicate: str, topic: bytes, state: Path, count: int | None) -> None:
    """Publish what matches PREDICATE in TOPIC on a chain, each event once, with its publisher's signature."""
    parse_predicate(predicate)
    with open_sender(settings) as (sender, contracts):
        landed = land(state, predicate, sender, contracts, topic, note)
        for number, (event_id, transaction) in enumerate(landed, start=1):
            record = {"event": event_id, "transaction": transaction}
            emit(settings.as_json, record, f"{event_id}  {transaction}")
            if number == count:
                return


to_topic.params.extend([*NODE_OPTIONS, *SENDER_OPTIONS])

"""What everybody may see: the topics, one topic, what the next publish would do."""

from dataclasses import dataclass

import click

from proofcast.cli.connection import Connection, Settings, connect
from proofcast.cli.output import emit, format_record, format_table
from proofcast.cli.topic.owner import describe_policy
from proofcast.cli.values import AMOUNT, TOPIC, format_ether
from proofcast.onchain import lens
from proofcast.onchain.abi import NOBODY, format_value
from proofcast.onchain.events import Delivered, TopicCreated
from proofcast.onchain.io.fees import FeePolicy, get_fees
from proofcast.onchain.io.reading import find_creation_block, find_logs, find_payload_type, read, read_all
from proofcast.onchain.lens import Subscription
from proofcast.onchain.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list of topics."""

    topic: bytes
    owner: bytes
    name: str
    events: int
    subscriptions: int


@click.command("list")
@click.pass_obj
def list_topics(settings: Settings) -> None:
    """List every topic of the contract."""
    with connect(settings) as connection:
        rows = find_rows(connection)
    cells = [
        (format_value(row.topic), format_name(row.owner, row.name), str(row.events), str(row.subscriptions))
        for row in rows
    ]
    table = format_table([("topic", "owner/name", "events", "subscriptions"), *cells])
    emit(settings.as_json, rows, table if rows else "there are no topics yet")


def format_name(owner: bytes, name: str) -> str:
    return f"{format_value(owner)}/{format_value(name)}"


def find_rows(connection: Connection) -> list[Row]:
    created = find_created(connection, None, find_creation_block(connection.rpc, connection.contracts.topics))
    states = read_all(connection.rpc, connection.contracts.lens, [lens.get_topic(event.topic) for event in created])
    return [
        Row(event.topic, event.owner, event.name, state.sequence, state.live)
        for event, state in zip(created, states, strict=True)
    ]


def find_created(connection: Connection, topic: bytes | None, first: int) -> list[TopicCreated]:
    """The births of all topics, or of one."""
    found = find_logs(connection.rpc, connection.contracts.topics, TopicCreated, topic, first=first)
    return [logged.event for logged in found if isinstance(logged.event, TopicCreated)]


def find_outcomes(connection: Connection, topic: bytes, sequence: int, first: int) -> dict[int, Outcome]:
    """What became of an event, by index."""
    number = sequence.to_bytes(32)
    outcomes: dict[int, Outcome] = {}
    for logged in find_logs(connection.rpc, connection.contracts.topics, Delivered, topic, number, first=first):
        if isinstance(logged.event, Delivered):
            outcomes |= logged.event.by_index()
    return outcomes


@click.command()
@click.argument("topic", type=TOPIC)
@click.pass_obj
def show(settings: Settings, topic: bytes) -> None:
    """Show a topic: its policy, its subscriptions and what became of its last event."""
    with connect(settings) as connection:
        state = read(connection.rpc, connection.contracts.lens, lens.get_topic(topic))
        calls = [lens.get_subscription(topic, index) for index in range(state.end)]
        subscriptions = dict(enumerate(read_all(connection.rpc, connection.contracts.lens, calls)))
        first = find_creation_block(connection.rpc, connection.contracts.topics)
        births = find_created(connection, topic, first)
        payload_type = find_payload_type(connection.rpc, connection.contracts.topics, topic, first)
        outcomes = find_outcomes(connection, topic, state.sequence, first)
    live = {index: held for index, held in subscriptions.items() if held.subscriber != NOBODY}
    name = births[0].name if births else ""
    listed = [describe_subscription(index, held, outcomes) for index, held in live.items()]
    record = {"topic": topic, "name": name, "payload_type": payload_type, "state": state, "subscriptions": listed}
    emit(settings.as_json, record, format_topic(topic, name, payload_type, state, live, outcomes))


def describe_subscription(index: int, held: Subscription, outcomes: dict[int, Outcome]) -> dict[str, object]:
    return {
        "index": index,
        "subscriber": held.subscriber,
        "terms": held.terms,
        "deposit_gwei": held.deposit_gwei,
        "last_outcome": outcomes.get(index),
    }


def format_topic(
    topic: bytes,
    name: str,
    payload_type: str,
    state: lens.Topic,
    live: dict[int, Subscription],
    outcomes: dict[int, Outcome],
) -> str:
    head = {
        "topic": format_value(topic),
        "owner/name": format_name(state.owner, name),
        "payload type": format_value(payload_type) or "not declared",
        "events": str(state.sequence),
        "credit": format_ether(state.credit_gwei),
        "pending": "yes, `proofcast topic deliver` goes on" if state.pending else "no",
        "sealed": f"{state.sealed_end} of {state.end} places",
        **describe_policy(state.policy),
    }
    rows = [
        (
            str(index),
            format_value(held.subscriber),
            format_ether(held.deposit_gwei),
            str(held.terms.callback_gas),
            outcomes[index].words if index in outcomes else "",
        )
        for index, held in live.items()
    ]
    table = format_table([("index", "subscriber", "deposit", "gas", "last event"), *rows])
    return format_record(head) + "\n\n" + (table if rows else "nobody has subscribed")


@click.command()
@click.argument("topic", type=TOPIC)
@click.option("--length", type=int, default=0, help="Bytes of the payload.")
@click.option("--gas-price", type=AMOUNT, help="Price per gas; else what the node expects.")
@click.pass_obj
def quote(settings: Settings, topic: bytes, length: int, gas_price: int | None) -> None:
    """Predict the next publish: its gas limit, who would be called and what they would pay at most."""
    with connect(settings) as connection:
        price = get_fees(connection.rpc, FeePolicy()).expected if gas_price is None else gas_price
        quoted = read(connection.rpc, connection.contracts.lens, lens.quote_publish(topic, length, price))
    outcomes = [(str(i), outcome.words) for i, outcome in enumerate(quoted.outcomes) if outcome is not Outcome.NONE]
    head = {
        "gas limit": str(quoted.gas_limit),
        "price": f"{price} wei per gas",
        "served": str(quoted.served),
        "credited at most": format_ether(quoted.most_credited_gwei),
    }
    table = "\n\n" + format_table([("index", "outcome"), *outcomes]) if outcomes else ""
    emit(settings.as_json, {"topic": topic, "gas_price_wei": price, "quote": quoted}, format_record(head) + table)

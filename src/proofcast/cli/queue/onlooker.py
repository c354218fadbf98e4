"""What everybody may see: the queues, one queue."""

import click

from proofcast.cli.connection import Settings
from proofcast.cli.exchange.session import (
    ID,
    read_exchanges,
)
from proofcast.cli.output import emit, format_record, format_table
from proofcast.cli.queue.terms import describe_queue
from proofcast.onchain import queues
from proofcast.onchain.abi import format_value
from proofcast.onchain.exchange_events import QueueCreated
from proofcast.onchain.io.exchanges import (
    find_exchange_logs,
    list_places,
)
from proofcast.onchain.io.reading import find_creation_block, read, read_all


@click.command("list")
@click.pass_obj
def list_queues(settings: Settings) -> None:
    """List every queue of the contract."""
    with read_exchanges(settings) as (rpc, contract):
        first = find_creation_block(rpc, contract)
        created = list(find_exchange_logs(rpc, contract, QueueCreated, first=first))
        states = read_all(rpc, contract, [queues.get_queue(event.queue) for event in created])
    cells = [
        (
            format_value(event.queue),
            f"{format_value(state.owner)}/{format_value(event.name)}",
            str(state.messages),
            str(state.held + state.pending),
            str(state.subscribers),
        )
        for event, state in zip(created, states, strict=True)
    ]
    record = [
        {"queue": event.queue, "name": event.name, "state": state} for event, state in zip(created, states, strict=True)
    ]
    table = format_table([("queue", "owner/name", "messages", "held", "subscribers"), *cells])
    emit(settings.as_json, record, table if cells else "there are no queues yet")


@click.command()
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.pass_obj
def show(settings: Settings, queue_id: bytes) -> None:
    """Show a queue: its terms, its money, who is subscribed."""
    with read_exchanges(settings) as (rpc, contract):
        state = read(rpc, contract, queues.get_queue(queue_id))
        places = list_places(rpc, contract, queue_id)
    rows = [
        (str(place), format_value(held.subscriber), f"left at {held.left}" if held.left else "")
        for place, held in enumerate(places)
    ]
    table = format_table([("place", "subscriber", ""), *rows]) if rows else "nobody has subscribed"
    record = {"queue": queue_id, "state": state, "subscribers": places}
    emit(settings.as_json, record, format_record(describe_queue(queue_id, state)) + "\n\n" + table)

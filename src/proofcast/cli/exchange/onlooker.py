"""What everybody may see: the exchanges, one exchange, why a key does or does not match."""

from dataclasses import dataclass

import click

from proofcast.cli.connection import Settings
from proofcast.cli.exchange.session import (
    ID,
    read_exchanges,
)
from proofcast.cli.output import emit, format_record, format_table
from proofcast.onchain import exchanges
from proofcast.onchain.abi import format_value
from proofcast.onchain.exchange_events import ExchangeCreated
from proofcast.onchain.exchanges import Exchange
from proofcast.onchain.io.exchanges import find_exchange_logs, list_bindings
from proofcast.onchain.io.reading import find_creation_block, read, read_all
from proofcast.routing.key import Hash
from proofcast.routing.route import explain_expression, explain_key


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list of exchanges."""

    exchange: bytes
    name: str
    state: Exchange


@click.command("list")
@click.pass_obj
def list_exchanges(settings: Settings) -> None:
    """List every exchange of the contract."""
    with read_exchanges(settings) as (rpc, contract):
        first = find_creation_block(rpc, contract)
        created = list(find_exchange_logs(rpc, contract, ExchangeCreated, first=first))
        states = read_all(rpc, contract, [exchanges.get_exchange(event.exchange) for event in created])
    rows = [Row(event.exchange, event.name, state) for event, state in zip(created, states, strict=True)]
    cells = [
        (
            format_value(row.exchange),
            f"{format_value(row.state.owner)}/{format_value(row.name)}",
            str(row.state.sequence),
            str(row.state.bindings),
        )
        for row in rows
    ]
    table = format_table([("exchange", "owner/name", "messages", "bindings"), *cells])
    emit(settings.as_json, rows, table if rows else "there are no exchanges yet")


@click.command()
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.pass_obj
def show(settings: Settings, exchange_id: bytes) -> None:
    """Show an exchange and its bindings."""
    with read_exchanges(settings) as (rpc, contract):
        state = read(rpc, contract, exchanges.get_exchange(exchange_id))
        bindings = list_bindings(rpc, contract, exchange_id)
    head = {
        "exchange": format_value(exchange_id),
        "owner": format_value(state.owner),
        "may publish": "everybody" if state.open else "the owner and those it approves",
        "`#` stands for": "none or one character" if state.hash_may_be_nothing else "exactly one character",
        "fee": f"{state.fee_wei} wei",
        "messages": str(state.sequence),
        "balance": f"{state.balance_wei} wei",
    }
    rows = [(binding.key, format_value(binding.queue)) for binding in bindings]
    table = format_table([("binding key", "queue"), *rows]) if rows else "no queue is bound"
    record = {"exchange": exchange_id, "state": state, "bindings": bindings}
    emit(settings.as_json, record, format_record(head) + "\n\n" + table)


@click.command()
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("key")
@click.option("--regex", is_flag=True, help="KEY is a regular expression.")
@click.pass_obj
def why(settings: Settings, exchange_id: bytes, key: str, regex: bool) -> None:
    """Say of every binding why a message with this routing key would, or would not, take it."""
    with read_exchanges(settings) as (rpc, contract):
        state = read(rpc, contract, exchanges.get_exchange(exchange_id))
        bindings = list_bindings(rpc, contract, exchange_id)
    hash_means = Hash.NONE_OR_ONE if state.hash_may_be_nothing else Hash.ONE
    reasons = [
        explain_expression(key, binding.key) if regex else explain_key(key, binding.key, hash_means)
        for binding in bindings
    ]
    record = [{"binding": binding, "because": reason} for binding, reason in zip(bindings, reasons, strict=True)]
    emit(settings.as_json, record, "\n".join(reasons) if reasons else "no queue is bound")

"""`proofcast exchange`: messages routed by keys to queues."""

from dataclasses import dataclass
from pathlib import Path

import click

from proofcast.cli.connection import NODE_OPTIONS, SENDER_OPTIONS, Settings, open_sender
from proofcast.cli.exchange_session import (
    ID,
    TO,
    describe_fate,
    format_fate,
    read_exchanges,
    send_to_exchanges,
)
from proofcast.cli.output import emit, format_record, format_table
from proofcast.cli.topic.publisher import read_payload
from proofcast.cli.topic.sending import describe_receipt
from proofcast.cli.values import ADDRESS, AMOUNT, require_text
from proofcast.onchain import exchanges
from proofcast.onchain.abi import Call, format_value
from proofcast.onchain.exchange_events import BindingChanged, ExchangeCreated, PaidOut, PublisherChanged
from proofcast.onchain.exchanges import Exchange
from proofcast.onchain.io.exchanges import deploy_exchanges, find_exchange_logs, get_event, list_bindings
from proofcast.onchain.io.reading import find_creation_block, read, read_all
from proofcast.onchain.request import ask
from proofcast.routing.key import Hash
from proofcast.routing.route import encode_expression_key, encode_routing_key, explain_expression, explain_key


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list of exchanges."""

    exchange: bytes
    name: str
    state: Exchange


@click.group()
def exchange() -> None:
    """Create exchanges, bind queues to them, publish messages by routing key.

    EXCHANGE and QUEUE are ids, or an owner's address, a slash and a name: `0x12..ef/colours`.
    """


@exchange.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.pass_obj
def deploy(settings: Settings) -> None:
    """Deploy `Exchanges` beside `Topics`, at the same address on every chain; does nothing where it is there."""
    with open_sender(settings) as (sender, contracts):
        contract = deploy_exchanges(sender, contracts.topics)
    emit(settings.as_json, {"exchanges": contract}, format_value(contract))


@exchange.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("name")
@click.option("--open", "is_open", is_flag=True, help="Anybody may publish.")
@click.option("--lenient", is_flag=True, help="`#` stands for none or one character, not for exactly one.")
@click.option("--fee", type=AMOUNT, default="0wei", show_default=True, help="What each message costs, for you.")
@click.pass_obj
def create(settings: Settings, name: str, is_open: bool, lenient: bool, fee: int) -> None:
    """Create an exchange called NAME."""
    call = exchanges.create_exchange(require_text(name), is_open=is_open, hash_may_be_nothing=lenient, fee_wei=fee)
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, call), settings.get_key())
    created = get_event(receipt, contract, ExchangeCreated)
    emit(settings.as_json, {"exchange": created.exchange, **describe_receipt(receipt)}, format_value(created.exchange))


@exchange.command("list", params=[*NODE_OPTIONS])
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


@exchange.command(params=[*NODE_OPTIONS])
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


def change_publisher(settings: Settings, call: Call[None]) -> None:
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, call), settings.get_key())
    changed = get_event(receipt, contract, PublisherChanged)
    text = f"{format_value(changed.publisher)} is {changed.status.name.lower()}"
    emit(settings.as_json, {"change": changed, **describe_receipt(receipt)}, text)


@exchange.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.pass_obj
def join(settings: Settings, exchange_id: bytes) -> None:
    """Ask an exchange to let your account publish."""
    change_publisher(settings, exchanges.request_publishing(exchange_id))


@exchange.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("account", type=ADDRESS)
@click.pass_obj
def approve(settings: Settings, exchange_id: bytes, account: bytes) -> None:
    """Let ACCOUNT, which has asked, publish in your exchange."""
    change_publisher(settings, exchanges.approve_publisher(exchange_id, account))


@exchange.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("account", type=ADDRESS)
@click.pass_obj
def remove(settings: Settings, exchange_id: bytes, account: bytes) -> None:
    """Reject the request of ACCOUNT to publish, or end its approval."""
    change_publisher(settings, exchanges.remove_publisher(exchange_id, account))


def change_binding(settings: Settings, call: Call[None]) -> None:
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, call), settings.get_key())
    changed = get_event(receipt, contract, BindingChanged)
    text = f"the binding by {changed.key} is {changed.status.name.lower()}"
    emit(settings.as_json, {"change": changed, **describe_receipt(receipt)}, text)


@exchange.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("queue", type=ID)
@click.argument("key")
@click.pass_obj
def bind(settings: Settings, exchange_id: bytes, queue: bytes, key: str) -> None:
    """Ask a queue to be bound to your exchange by a key; an open queue, or one of your own, is bound at once."""
    change_binding(settings, exchanges.request_binding(exchange_id, queue, require_text(key)))


@exchange.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("queue", type=ID)
@click.argument("key")
@click.pass_obj
def unbind(settings: Settings, exchange_id: bytes, queue: bytes, key: str) -> None:
    """End a binding, or take the request for it back."""
    change_binding(settings, exchanges.remove_binding(exchange_id, queue, require_text(key)))


@exchange.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("key")
@click.argument("payload", required=False)
@click.option("--hex", "as_hex", help="Payload as hexadecimal digits.")
@click.option("--file", type=click.Path(path_type=Path), help="Payload from a file; `-` for standard input.")
@click.option("--regex", is_flag=True, help="KEY is a regular expression such as `colou?r-(black|white)`.")
@click.option("--value", type=AMOUNT, default="0wei", show_default=True, help="Split among those it reaches.")
@click.pass_obj
def publish(
    settings: Settings,
    exchange_id: bytes,
    key: str,
    payload: str | None,
    as_hex: str | None,
    file: Path | None,
    regex: bool,
    value: int,
) -> None:
    """Publish PAYLOAD, a text, by a routing key: `*` stands for one or more characters, `#` for one."""
    route = encode_expression_key(key) if regex else encode_routing_key(require_text(key))
    call = exchanges.publish(exchange_id, route, read_payload(payload, as_hex, file), value)
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, call), settings.get_key())
    emit(settings.as_json, describe_fate(receipt, contract), format_fate(receipt, contract))


@exchange.command(params=[*NODE_OPTIONS])
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


@exchange.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("exchange_id", metavar="[EXCHANGE]", type=ID, required=False)
@TO
@click.pass_obj
def collect(settings: Settings, exchange_id: bytes | None, to: bytes | None) -> None:
    """Take what messages have brought your account; with an exchange, the fees that it took."""
    with send_to_exchanges(settings) as (sender, contract):
        payee = to or sender.address
        call = exchanges.collect_exchange(exchange_id, payee) if exchange_id else exchanges.collect(payee)
        receipt = sender.send(ask(contract, call), settings.get_key())
    paid = get_event(receipt, contract, PaidOut)
    emit(settings.as_json, {"paid": paid, **describe_receipt(receipt)}, f"got {paid.amount_wei} wei")

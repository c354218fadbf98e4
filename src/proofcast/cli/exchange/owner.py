"""What the owner of an exchange does besides approving: create it, take its fees."""

import click

from proofcast.cli.connection import Settings, open_sender
from proofcast.cli.exchange.session import (
    ID,
    TO,
    send_to_exchanges,
)
from proofcast.cli.output import emit
from proofcast.cli.topic.sending import describe_receipt
from proofcast.cli.values import AMOUNT, require_text
from proofcast.onchain import exchanges
from proofcast.onchain.abi import format_value
from proofcast.onchain.exchange_events import ExchangeCreated, PaidOut
from proofcast.onchain.io.exchanges import deploy_exchanges, get_event
from proofcast.onchain.request import ask


@click.command()
@click.pass_obj
def deploy(settings: Settings) -> None:
    """Deploy `Exchanges` beside `Topics`, at the same address on every chain; does nothing where it is there."""
    with open_sender(settings) as (sender, contracts):
        contract = deploy_exchanges(sender, contracts.topics)
    emit(settings.as_json, {"exchanges": contract}, format_value(contract))


@click.command()
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


@click.command()
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

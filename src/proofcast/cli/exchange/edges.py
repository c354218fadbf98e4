"""Who may publish in an exchange and which queues are bound to it: requests, approvals, removals."""

from collections.abc import Callable
from typing import TypeVar

import click

from proofcast.cli.connection import Settings
from proofcast.cli.exchange.session import ID, send_to_exchanges
from proofcast.cli.output import emit
from proofcast.cli.topic.sending import describe_receipt
from proofcast.cli.values import ADDRESS, require_text
from proofcast.onchain import exchanges
from proofcast.onchain.abi import Call, format_value
from proofcast.onchain.exchange_events import BindingChanged, PublisherChanged, SubscriberChanged
from proofcast.onchain.io.exchanges import get_event
from proofcast.onchain.request import ask

Edge = TypeVar("Edge", PublisherChanged, SubscriberChanged, BindingChanged)


def change_edge(settings: Settings, call: Call[None], kind: type[Edge], name: Callable[[Edge], str]) -> None:
    """Send a call that changes who may do what, and say what came of it."""
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, call), settings.get_key())
    changed = get_event(receipt, contract, kind)
    text = f"{name(changed)} is {changed.status.name.lower()}"
    emit(settings.as_json, {"change": changed, **describe_receipt(receipt)}, text)


def change_publisher(settings: Settings, call: Call[None]) -> None:
    change_edge(settings, call, PublisherChanged, lambda changed: format_value(changed.publisher))


def change_binding(settings: Settings, call: Call[None]) -> None:
    change_edge(settings, call, BindingChanged, lambda changed: f"the binding by {changed.key}")


@click.command()
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.pass_obj
def join(settings: Settings, exchange_id: bytes) -> None:
    """Ask an exchange to let your account publish."""
    change_publisher(settings, exchanges.request_publishing(exchange_id))


@click.command()
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("account", type=ADDRESS)
@click.pass_obj
def approve(settings: Settings, exchange_id: bytes, account: bytes) -> None:
    """Let ACCOUNT, which has asked, publish in your exchange."""
    change_publisher(settings, exchanges.approve_publisher(exchange_id, account))


@click.command()
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("account", type=ADDRESS)
@click.pass_obj
def remove(settings: Settings, exchange_id: bytes, account: bytes) -> None:
    """Reject the request of ACCOUNT to publish, or end its approval."""
    change_publisher(settings, exchanges.remove_publisher(exchange_id, account))


@click.command()
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("queue", type=ID)
@click.argument("key")
@click.pass_obj
def bind(settings: Settings, exchange_id: bytes, queue: bytes, key: str) -> None:
    """Ask a queue to be bound to your exchange by a key; an open queue, or one of your own, is bound at once."""
    change_binding(settings, exchanges.request_binding(exchange_id, queue, require_text(key)))


@click.command()
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("queue", type=ID)
@click.argument("key")
@click.pass_obj
def unbind(settings: Settings, exchange_id: bytes, queue: bytes, key: str) -> None:
    """End a binding, or take the request for it back."""
    change_binding(settings, exchanges.remove_binding(exchange_id, queue, require_text(key)))

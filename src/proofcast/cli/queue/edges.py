"""Who is subscribed to a queue and which exchanges reach it: requests, approvals, removals."""

import click

from proofcast.cli.connection import Settings
from proofcast.cli.exchange.edges import change_binding, change_edge
from proofcast.cli.exchange.session import ID
from proofcast.cli.values import ADDRESS, require_text
from proofcast.onchain import exchanges, queues
from proofcast.onchain.abi import Call, format_value
from proofcast.onchain.exchange_events import SubscriberChanged


def change_subscriber(settings: Settings, call: Call[None]) -> None:
    change_edge(settings, call, SubscriberChanged, lambda changed: format_value(changed.subscriber))


@click.command()
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.pass_obj
def subscribe(settings: Settings, queue_id: bytes) -> None:
    """Ask a queue to subscribe your account; an open queue, or one of your own, does so at once."""
    change_subscriber(settings, queues.subscribe(queue_id))


@click.command()
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.argument("account", type=ADDRESS)
@click.pass_obj
def approve(settings: Settings, queue_id: bytes, account: bytes) -> None:
    """Subscribe ACCOUNT, which has asked, to your queue."""
    change_subscriber(settings, queues.approve_subscriber(queue_id, account))


@click.command()
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.argument("account", type=ADDRESS)
@click.pass_obj
def remove(settings: Settings, queue_id: bytes, account: bytes) -> None:
    """Reject the request of ACCOUNT to subscribe, or end its subscription."""
    change_subscriber(settings, queues.remove_subscriber(queue_id, account))


@click.command("approve-binding")
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("key")
@click.pass_obj
def approve_binding(settings: Settings, queue_id: bytes, exchange_id: bytes, key: str) -> None:
    """Let an exchange, whose owner has asked, reach your queue by exactly this key."""
    change_binding(settings, exchanges.approve_binding(exchange_id, queue_id, require_text(key)))

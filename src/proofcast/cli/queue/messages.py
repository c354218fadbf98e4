"""What becomes of held messages: released, or given up."""

from collections.abc import Callable

import click

from proofcast.chain.io.rpc import RpcClient
from proofcast.cli.connection import Settings
from proofcast.cli.exchange.session import (
    ID,
    describe_fate,
    format_fate,
    send_to_exchanges,
)
from proofcast.cli.output import emit
from proofcast.cli.values import ADDRESS
from proofcast.onchain import queues
from proofcast.onchain.abi import Call
from proofcast.onchain.io.exchanges import (
    HeldMessage,
    find_next,
    find_oldest,
)
from proofcast.onchain.queues import Header
from proofcast.onchain.request import Request, compute_intent

Find = Callable[[RpcClient, bytes, bytes], HeldMessage]
Settle = Callable[[bytes, Header, bytes, bytes, bytes], Call[bool] | Call[None]]
PAYEE = click.option("--payee", type=ADDRESS, help="Who gets the reward; else your own account.")


def settle(settings: Settings, queue_id: bytes, payee: bytes | None, find: Find, build: Settle) -> None:
    """Have one held message dealt with; which one is looked up when the transaction is made."""
    with send_to_exchanges(settings) as (sender, contract):

        def plan() -> Request:
            message = find(sender.rpc, contract, queue_id)
            call = build(queue_id, message.header, message.key, message.payload, payee or sender.address)
            return Request(contract, call.data)

        intent = compute_intent(build.__name__, contract, queue_id, payee)
        receipt = sender.send_planned(plan, intent, settings.get_key())
    emit(settings.as_json, describe_fate(receipt, contract), format_fate(receipt, contract))


@click.command()
@click.argument("queue_id", metavar="QUEUE", type=ID)
@PAYEE
@click.pass_obj
def release(settings: Settings, queue_id: bytes, payee: bytes | None) -> None:
    """Deliver the next held message, or go on with one that is half delivered; anybody may."""
    settle(settings, queue_id, payee, find_next, queues.release)


@click.command()
@click.argument("queue_id", metavar="QUEUE", type=ID)
@PAYEE
@click.pass_obj
def expire(settings: Settings, queue_id: bytes, payee: bytes | None) -> None:
    """Give up the oldest held message when its lifetime is over; anybody may."""
    settle(settings, queue_id, payee, find_oldest, queues.expire)

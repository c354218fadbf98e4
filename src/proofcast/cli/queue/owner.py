"""What the owner of a queue does: create it, fund it, take the fund back."""

import click

from proofcast.cli.connection import Settings
from proofcast.cli.exchange.session import (
    ID,
    TO,
    send_to_exchanges,
)
from proofcast.cli.output import emit
from proofcast.cli.queue.terms import choose_condition
from proofcast.cli.topic.sending import describe_receipt
from proofcast.cli.values import ADDRESS, AMOUNT, TOPIC, require_text
from proofcast.onchain import queues
from proofcast.onchain.abi import format_value
from proofcast.onchain.exchange_events import PaidOut, QueueCreated, QueueFunded
from proofcast.onchain.io.exchanges import (
    get_event,
)
from proofcast.onchain.queues import QueueTerms
from proofcast.onchain.request import ask

DEFAULTS = QueueTerms()


@click.command()
@click.argument("name")
@click.option("--open-binding", is_flag=True, help="Exchanges bind it without your approval.")
@click.option("--open-subscribing", is_flag=True, help="Anybody subscribes without your approval.")
@click.option("--open-value", is_flag=True, help="Split value although anybody may be several subscribers.")
@click.option("--lifo", is_flag=True, help="Release the newest first.")
@click.option("--delay", type=int, metavar="SECONDS", help="Hold messages so long.")
@click.option("--not-before", type=int, metavar="TIME", help="Hold messages until this Unix time.")
@click.option("--after-event", type=TOPIC, help="Hold messages until the topic's next event.")
@click.option("--gauge", type=ADDRESS, help="Hold messages until this gauge shows more or less than a value.")
@click.option("--above", type=int, help="The gauge must show more.")
@click.option("--below", type=int, help="The gauge must show less.")
@click.option("--released-by", type=ADDRESS, help="Hold messages until this account releases them.")
@click.option("--lifetime", type=int, default=DEFAULTS.lifetime_s, show_default=True, help="Seconds until they expire.")
@click.option("--callback-gas", type=int, default=DEFAULTS.callback_gas, show_default=True, help="Of each subscriber.")
@click.option("--reward", type=AMOUNT, default="0wei", show_default=True, help="For who releases, from the fund.")
@click.option("--dead-letter", type=ID, default=None, help="Queue that gets what expires.")
@click.pass_obj
def create(
    settings: Settings,
    name: str,
    open_binding: bool,
    open_subscribing: bool,
    open_value: bool,
    lifo: bool,
    delay: int | None,
    not_before: int | None,
    after_event: bytes | None,
    gauge: bytes | None,
    above: int | None,
    below: int | None,
    released_by: bytes | None,
    lifetime: int,
    callback_gas: int,
    reward: int,
    dead_letter: bytes | None,
) -> None:
    """Create a queue called NAME; its terms never change."""
    condition, subject = choose_condition(
        delay is not None or not_before is not None, after_event, gauge, above, below, released_by
    )
    terms = QueueTerms(
        open_binding=open_binding,
        open_subscribing=open_subscribing,
        open_value=open_value,
        lifo=lifo,
        condition=condition,
        subject=subject,
        threshold=(above if above is not None else below) or 0,
        delay_s=delay or 0,
        not_before=not_before or 0,
        lifetime_s=lifetime,
        callback_gas=callback_gas,
        reward_wei=reward,
        dead_letter=dead_letter or queues.NO_QUEUE,
    )
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, queues.create_queue(require_text(name), terms)), settings.get_key())
    created = get_event(receipt, contract, QueueCreated)
    emit(settings.as_json, {"queue": created.queue, **describe_receipt(receipt)}, format_value(created.queue))


@click.command()
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.argument("amount", type=AMOUNT)
@click.pass_obj
def fund(settings: Settings, queue_id: bytes, amount: int) -> None:
    """Add AMOUNT to what a queue pays for releases."""
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, queues.fund(queue_id, amount)), settings.get_key())
    funded = get_event(receipt, contract, QueueFunded)
    emit(settings.as_json, {"funded": funded, **describe_receipt(receipt)}, f"added {funded.amount_wei} wei")


@click.command()
@click.argument("queue_id", metavar="QUEUE", type=ID)
@TO
@click.pass_obj
def collect(settings: Settings, queue_id: bytes, to: bytes | None) -> None:
    """Take the fund of your queue back."""
    with send_to_exchanges(settings) as (sender, contract):
        call = queues.collect_queue(queue_id, to or sender.address)
        receipt = sender.send(ask(contract, call), settings.get_key())
    paid = get_event(receipt, contract, PaidOut)
    emit(settings.as_json, {"paid": paid, **describe_receipt(receipt)}, f"got {paid.amount_wei} wei")

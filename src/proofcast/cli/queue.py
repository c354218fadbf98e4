"""`proofcast queue`: queues, who is subscribed to them, and the messages they hold."""

from collections.abc import Callable

import click

from proofcast.chain.io.rpc import RpcClient
from proofcast.cli.connection import NODE_OPTIONS, SENDER_OPTIONS, Settings
from proofcast.cli.exchange import change_binding
from proofcast.cli.exchange_session import (
    ID,
    TO,
    describe_fate,
    format_fate,
    read_exchanges,
    send_to_exchanges,
)
from proofcast.cli.output import emit, format_record, format_table
from proofcast.cli.queue_terms import choose_condition, describe_queue
from proofcast.cli.topic.sending import describe_receipt
from proofcast.cli.values import ADDRESS, AMOUNT, TOPIC, require_text
from proofcast.onchain import exchanges, queues
from proofcast.onchain.abi import Call, format_value
from proofcast.onchain.exchange_events import PaidOut, QueueCreated, QueueFunded, SubscriberChanged
from proofcast.onchain.io.exchanges import (
    HeldMessage,
    find_exchange_logs,
    find_next,
    find_oldest,
    get_event,
    list_places,
)
from proofcast.onchain.io.reading import find_creation_block, read, read_all
from proofcast.onchain.queues import Header, QueueTerms
from proofcast.onchain.request import Request, ask, compute_intent

DEFAULTS = QueueTerms()


@click.group()
def queue() -> None:
    """Create queues, subscribe to them, release what they hold.

    QUEUE and EXCHANGE are ids, or an owner's address, a slash and a name: `0x12..ef/colours`.
    """


@queue.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
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


@queue.command("list", params=[*NODE_OPTIONS])
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


@queue.command(params=[*NODE_OPTIONS])
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


def change_subscriber(settings: Settings, call: Call[None]) -> None:
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, call), settings.get_key())
    changed = get_event(receipt, contract, SubscriberChanged)
    text = f"{format_value(changed.subscriber)} is {changed.status.name.lower()}"
    emit(settings.as_json, {"change": changed, **describe_receipt(receipt)}, text)


@queue.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.pass_obj
def subscribe(settings: Settings, queue_id: bytes) -> None:
    """Ask a queue to subscribe your account; an open queue, or one of your own, does so at once."""
    change_subscriber(settings, queues.subscribe(queue_id))


@queue.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.argument("account", type=ADDRESS)
@click.pass_obj
def approve(settings: Settings, queue_id: bytes, account: bytes) -> None:
    """Subscribe ACCOUNT, which has asked, to your queue."""
    change_subscriber(settings, queues.approve_subscriber(queue_id, account))


@queue.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.argument("account", type=ADDRESS)
@click.pass_obj
def remove(settings: Settings, queue_id: bytes, account: bytes) -> None:
    """Reject the request of ACCOUNT to subscribe, or end its subscription."""
    change_subscriber(settings, queues.remove_subscriber(queue_id, account))


@queue.command("approve-binding", params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("key")
@click.pass_obj
def approve_binding(settings: Settings, queue_id: bytes, exchange_id: bytes, key: str) -> None:
    """Let an exchange, whose owner has asked, reach your queue by exactly this key."""
    change_binding(settings, exchanges.approve_binding(exchange_id, queue_id, require_text(key)))


Find = Callable[[RpcClient, bytes, bytes], HeldMessage]
Settle = Callable[[bytes, Header, bytes, bytes, bytes], Call[bool] | Call[None]]


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


PAYEE = click.option("--payee", type=ADDRESS, help="Who gets the reward; else your own account.")


@queue.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("queue_id", metavar="QUEUE", type=ID)
@PAYEE
@click.pass_obj
def release(settings: Settings, queue_id: bytes, payee: bytes | None) -> None:
    """Deliver the next held message, or go on with one that is half delivered; anybody may."""
    settle(settings, queue_id, payee, find_next, queues.release)


@queue.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("queue_id", metavar="QUEUE", type=ID)
@PAYEE
@click.pass_obj
def expire(settings: Settings, queue_id: bytes, payee: bytes | None) -> None:
    """Give up the oldest held message when its lifetime is over; anybody may."""
    settle(settings, queue_id, payee, find_oldest, queues.expire)


@queue.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.argument("queue_id", metavar="QUEUE", type=ID)
@click.argument("amount", type=AMOUNT)
@click.pass_obj
def fund(settings: Settings, queue_id: bytes, amount: int) -> None:
    """Add AMOUNT to what a queue pays for releases."""
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, queues.fund(queue_id, amount)), settings.get_key())
    funded = get_event(receipt, contract, QueueFunded)
    emit(settings.as_json, {"funded": funded, **describe_receipt(receipt)}, f"added {funded.amount_wei} wei")


@queue.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
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

"""What a subscriber does: subscribe with a deposit, fund it, take it back, leave.

With `--via` the subscriber is a contract that follows the `Subscriber` base, and the key is its owner's.
"""

import click

from proofcast.chain.io.rpc import RpcClient
from proofcast.cli.connection import Settings, open_sender
from proofcast.cli.output import emit, note
from proofcast.cli.topic.sending import describe_receipt
from proofcast.cli.values import ADDRESS, AMOUNT, TOPIC, WEI_PER_UNIT, format_ether, refuse
from proofcast.onchain import lens, subscriber, topics
from proofcast.onchain.abi import format_value
from proofcast.onchain.events import Collected, Subscribed, Unsubscribed
from proofcast.onchain.io.reading import has_code, read
from proofcast.onchain.policy import Terms
from proofcast.onchain.request import Request, ask, compute_intent

VIA = click.option("--via", type=ADDRESS, help="Subscriber contract that your key owns.")
TO = click.option("--to", type=ADDRESS, help="Who is paid; else your own account.")


def count_units(amount_wei: int, unit: str) -> int:
    """An amount in whole units of the contract."""
    if amount_wei % WEI_PER_UNIT[unit]:
        raise refuse(f"`{amount_wei}` wei is no whole number of {unit}", f"round it to {WEI_PER_UNIT[unit]} wei")
    return amount_wei // WEI_PER_UNIT[unit]


@click.command()
@click.argument("topic", type=TOPIC)
@click.option("--deposit", type=AMOUNT, required=True, help="What deliveries are paid from, e.g. `0.01ether`.")
@click.option("--gas", type=int, help="Exact gas of each callback; else the most the topic allows.")
@click.option("--max-price", type=AMOUNT, default="100gwei", show_default=True, help="Most to pay per gas.")
@click.option(
    "--max-share", type=AMOUNT, default="0.01ether", show_default=True, help="Most to pay per event beyond own gas."
)
@VIA
@click.pass_obj
def subscribe(
    settings: Settings, topic: bytes, deposit: int, gas: int | None, max_price: int, max_share: int, via: bytes | None
) -> None:
    """Subscribe your account, or the contract named by --via, to a topic."""
    price, share = count_units(max_price, "mwei"), count_units(max_share, "gwei")
    with open_sender(settings) as (sender, contracts):

        def plan() -> Request:
            policy = read(sender.rpc, contracts.lens, lens.get_topic(topic)).policy
            terms = Terms(policy.callback_gas if gas is None else gas, price, share)
            hole = read(sender.rpc, contracts.lens, lens.find_hole(topic))
            warn_without_code(sender.rpc, via or sender.address)
            call = (subscriber.subscribe_to if via else topics.subscribe)(topic, terms, deposit, hole)
            return ask(via or contracts.topics, call)

        intent = compute_intent("subscribe", contracts.topics, topic, deposit, gas, price, share, via)
        receipt = sender.send_planned(plan, intent, settings.get_key())
    subscribed = receipt.get_event(contracts.topics, Subscribed)
    emit(settings.as_json, {**vars_of(subscribed), **describe_receipt(receipt)}, str(subscribed.index))


def vars_of(subscribed: Subscribed) -> dict[str, object]:
    names = ("topic", "subscriber", "index", "terms", "deposit_gwei")
    return {name: getattr(subscribed, name) for name in names}


def warn_without_code(rpc: RpcClient, account: bytes) -> None:
    if not has_code(rpc, account, "latest"):
        note(f"warning: `{format_value(account)}` has no code; its deliveries will be billed as `no code`")


@click.command()
@click.argument("topic", type=TOPIC)
@click.argument("index", type=int)
@TO
@VIA
@click.pass_obj
def unsubscribe(settings: Settings, topic: bytes, index: int, to: bytes | None, via: bytes | None) -> None:
    """End the subscription at INDEX and take its deposit back."""
    with open_sender(settings) as (sender, contracts):
        call = (subscriber.unsubscribe_from if via else topics.unsubscribe)(topic, index, to or sender.address)
        receipt = sender.send(ask(via or contracts.topics, call), settings.get_key())
    residue = receipt.get_event(contracts.topics, Unsubscribed).residue_gwei
    record = {"topic": topic, "index": index, "residue_gwei": residue, **describe_receipt(receipt)}
    emit(settings.as_json, record, f"got {format_ether(residue)} back")


@click.command()
@click.argument("topic", type=TOPIC)
@click.argument("index", type=int)
@click.argument("amount", type=AMOUNT)
@click.pass_obj
def fund(settings: Settings, topic: bytes, index: int, amount: int) -> None:
    """Add AMOUNT to the deposit at INDEX; anybody may."""
    count_units(amount, "gwei")
    with open_sender(settings) as (sender, contracts):
        receipt = sender.send(ask(contracts.topics, topics.fund(topic, index, amount)), settings.get_key())
        deposit = read(sender.rpc, contracts.lens, lens.get_subscription(topic, index)).deposit_gwei
    record = {"topic": topic, "index": index, "deposit_gwei": deposit, **describe_receipt(receipt)}
    emit(settings.as_json, record, f"the deposit is {format_ether(deposit)}")


@click.command()
@click.argument("topic", type=TOPIC)
@click.argument("index", type=int)
@click.argument("amount", type=AMOUNT)
@TO
@VIA
@click.pass_obj
def withdraw(settings: Settings, topic: bytes, index: int, amount: int, to: bytes | None, via: bytes | None) -> None:
    """Take AMOUNT of the deposit at INDEX back; what stays must be at least the topic's floor."""
    gwei = count_units(amount, "gwei")
    with open_sender(settings) as (sender, contracts):
        call = (subscriber.withdraw_from if via else topics.withdraw)(topic, index, gwei, to or sender.address)
        receipt = sender.send(ask(via or contracts.topics, call), settings.get_key())
        deposit = read(sender.rpc, contracts.lens, lens.get_subscription(topic, index)).deposit_gwei
    record = {"topic": topic, "index": index, "deposit_gwei": deposit, **describe_receipt(receipt)}
    emit(settings.as_json, record, f"the deposit is {format_ether(deposit)}")


@click.command()
@click.argument("topic", type=TOPIC, required=False)
@TO
@VIA
@click.pass_obj
def collect(settings: Settings, topic: bytes | None, to: bytes | None, via: bytes | None) -> None:
    """Take what you are owed; with TOPIC what its publications left with it, for its owner."""
    with open_sender(settings) as (sender, contracts):
        receiver = to or sender.address
        call = topics.collect_topic(topic, receiver) if topic else topics.collect(receiver)
        request = ask(via, subscriber.collect_to(receiver)) if via else ask(contracts.topics, call)
        receipt = sender.send(request, settings.get_key())
    amount = receipt.get_event(contracts.topics, Collected).amount_gwei
    emit(settings.as_json, {"amount_gwei": amount, **describe_receipt(receipt)}, f"got {format_ether(amount)}")

"""What a topic's owner does: create it, change its policy, say who may publish."""

import click

from proofcast.cli.connection import Settings, open_sender
from proofcast.cli.output import emit, format_record
from proofcast.cli.topic.sending import describe_receipt
from proofcast.cli.values import ADDRESS, TOPIC, format_ether, refuse, require_text
from proofcast.onchain import lens, topics
from proofcast.onchain.abi import build_from, format_value
from proofcast.onchain.events import PolicyChanged, TopicCreated
from proofcast.onchain.io.artefacts import load_artefact
from proofcast.onchain.io.reading import read
from proofcast.onchain.policy import POLICY_FIELDS, Access, Policy
from proofcast.onchain.request import Request, ask, compute_intent
from proofcast.onchain.signed import encode_creation

ROLES = {
    "nothing": 0,
    "publish": topics.MAY_PUBLISH,
    "subscribe": topics.MAY_SUBSCRIBE,
    "both": topics.MAY_PUBLISH | topics.MAY_SUBSCRIBE,
}
ACCESS_WORDS = {
    Access.LISTED: "the owner and those it lists",
    Access.ASKED: "whom the owner contract admits when asked",
    Access.OPEN: "everybody",
}
FIELD_NAMES = ", ".join(field.name for field in POLICY_FIELDS)


def change_policy(policy: Policy, assignments: tuple[str, ...]) -> Policy:
    """A policy with each `field=value` applied."""
    values = {field.name: getattr(policy, field.name) for field in POLICY_FIELDS}
    values |= dict(map(parse_assignment, assignments))
    return build_from(Policy, [values[field.name] for field in POLICY_FIELDS])


def parse_assignment(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if name not in {field.name for field in POLICY_FIELDS}:
        raise refuse(f"`{name}` is no field of a policy", f"the fields are {FIELD_NAMES}")
    if name in ("publishing", "subscribing"):
        if value.upper() not in Access.__members__:
            raise refuse(f"`{value}` is no kind of access", "write `listed`, `asked` or `open`")
        return name, Access[value.upper()]
    if not value.isdecimal():
        raise refuse(f"`{value}` is no value for `{name}`", "write a whole number")
    return name, int(value)


@click.command()
@click.argument("name")
@click.option("--payload-type", default="", help="ABI type of the payload, e.g. `(string flight, uint64 delay)`.")
@click.option(
    "--policy", "assignments", multiple=True, metavar="FIELD=VALUE", help=f"Repeatable; fields: {FIELD_NAMES}."
)
@click.option("--signed-by", type=ADDRESS, help="Deploy a `SignedPublisher` that owns the topic and obeys this signer.")
@click.pass_obj
def create(
    settings: Settings, name: str, payload_type: str, assignments: tuple[str, ...], signed_by: bytes | None
) -> None:
    """Create a topic called NAME."""
    policy = change_policy(Policy(), assignments) if assignments else None
    name, payload_type = require_text(name), require_text(payload_type)
    with open_sender(settings) as (sender, contracts):
        request = ask(contracts.topics, topics.create(name, policy))
        if signed_by:
            code = load_artefact("SignedPublisher").creation_code
            request = Request(None, encode_creation(code, contracts.topics, signed_by, name, payload_type, policy))
        receipt = sender.send(request, settings.get_key())
        created = receipt.get_event(contracts.topics, TopicCreated)
        if payload_type and not signed_by:
            call = topics.set_payload_type(created.topic, payload_type)
            sender.send(ask(contracts.topics, call), f"{settings.get_key()}, payload type")
    record = {"topic": created.topic, "owner": created.owner, "name": created.name, **describe_receipt(receipt)}
    emit(settings.as_json, record, format_value(created.topic))


@click.command("payload-type")
@click.argument("topic", type=TOPIC)
@click.argument("payload_type")
@click.pass_obj
def set_payload_type(settings: Settings, topic: bytes, payload_type: str) -> None:
    """Say what a topic's payload is, e.g. `(string flight, uint64 delay)`, so that services can show its fields."""
    call = topics.set_payload_type(topic, require_text(payload_type))
    with open_sender(settings) as (sender, contracts):
        receipt = sender.send(ask(contracts.topics, call), settings.get_key())
    record = {"topic": topic, "payload_type": payload_type, **describe_receipt(receipt)}
    emit(settings.as_json, record, f"the payload is {payload_type}")


@click.command()
@click.argument("topic", type=TOPIC)
@click.argument("assignments", nargs=-1, required=True, metavar="FIELD=VALUE...")
@click.pass_obj
def policy(settings: Settings, topic: bytes, assignments: tuple[str, ...]) -> None:
    """Change fields of a topic's policy and print it; `topic create --help` lists the fields."""
    with open_sender(settings) as (sender, contracts):

        def plan() -> Request:
            old = read(sender.rpc, contracts.lens, lens.get_topic(topic)).policy
            return ask(contracts.topics, topics.set_policy(topic, change_policy(old, assignments)))

        intent = compute_intent("policy", contracts.topics, topic, *sorted(assignments))
        receipt = sender.send_planned(plan, intent, settings.get_key())
    new = receipt.get_event(contracts.topics, PolicyChanged).policy
    record = {"topic": topic, "policy": new, **describe_receipt(receipt)}
    emit(settings.as_json, record, format_record(describe_policy(new)))


def describe_policy(policy: Policy) -> dict[str, str]:
    """A policy in words."""
    return {
        "may publish": ACCESS_WORDS[policy.publishing],
        "may subscribe": ACCESS_WORDS[policy.subscribing],
        "callback": f"at most {policy.callback_gas} gas",
        "reward": f"{format_ether(policy.reward_gwei)} per event from each served subscriber",
        "deposit": f"at least {format_ether(policy.deposit_floor_gwei)}, or removed",
        "gas price": f"subscribers pay up to {policy.tip_cap_mwei / 1000:g} gwei above the base fee",
        "shared gas": f"{policy.base_gas}, and {policy.publisher_gas} more where a contract publishes",
        "payload gas": f"{policy.token_gas} per token, at least {policy.floor_token_gas} by the floor",
        "data fee": f"{policy.data_fee_mwei} mwei per payload byte",
    }


@click.command("publisher")
@click.argument("topic", type=TOPIC)
@click.argument("account", type=ADDRESS)
@click.option(
    "--may", type=click.Choice(list(ROLES)), default="publish", show_default=True, help="All it may do from now on."
)
@click.pass_obj
def set_publisher(settings: Settings, topic: bytes, account: bytes, may: str) -> None:
    """List ACCOUNT as a publisher or subscriber of a topic, or take it off the list."""
    with open_sender(settings) as (sender, contracts):
        receipt = sender.send(ask(contracts.topics, topics.set_roles(topic, account, ROLES[may])), settings.get_key())
    record = {"topic": topic, "account": account, "may": may, **describe_receipt(receipt)}
    emit(settings.as_json, record, f"{format_value(account)} may {may}")

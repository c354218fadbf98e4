"""`proofcast group`: sealed, strictly ordered groups, and the server that orders them."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import click

from proofcast.cli.connection import Settings
from proofcast.cli.device_session import DEVICE_OPTIONS, do_nothing, require_trust, run_online, use_device
from proofcast.cli.group_demo import demo
from proofcast.cli.group_proof import prove, recover, verify_proof
from proofcast.cli.group_serve import retire, serve
from proofcast.cli.group_witness import demand, witness
from proofcast.cli.output import emit, format_record, format_table
from proofcast.errors import InvalidRequest, Reason
from proofcast.groups.conversation import (
    GROUP_ID_BYTES,
    Group,
    Members,
    Operation,
    Said,
    Text,
    change_members,
    is_name,
)
from proofcast.groups.identity import compute_safety_number
from proofcast.groups.io.connection import Connection
from proofcast.groups.io.device import Device
from proofcast.groups.proof import INDEX_BITS


@click.group()
def group() -> None:
    """Talk in groups whose order and content no server can change unnoticed."""


for command in (demo, serve, retire, witness, prove, verify_proof, recover):
    group.add_command(command)
group.add_command(demand, "witnesses")


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was said, for people and programs."""

    sequence: int
    group: str
    sender: str
    text: str


def make_line(device: Device, said: Said) -> Line:
    is_own = said.sender == device.device_id
    return Line(said.sequence, said.group.name, "you" if is_own else device.notebook.get_name(said.sender), said.text)


def print_lines(settings: Settings, lines: list[Line]) -> None:
    for line in lines:
        emit(settings.as_json, line, f"{format_sequence(line.sequence)}  [{line.group}] {line.sender}: {line.text}")


def format_sequence(sequence: int) -> str:
    """Frame and place in it."""
    return f"{sequence >> INDEX_BITS}.{sequence % (1 << INDEX_BITS)}".rjust(8)


Making = Callable[[Device], tuple[Operation, tuple[bytes, ...]]]
"""From the device, which is up to date, to an operation and its recipients."""


def send_operation(settings: Settings, name: str, make: Making) -> None:
    """Bring the device up to date, send one operation, and print it where it stands in the order."""

    async def work(device: Device, connection: Connection) -> None:
        require_trust(device)
        known = {said.sequence for said in device.notebook.lines}
        operation, recipients = make(device)
        await device.send([(operation, recipients)], connection)
        fresh = (said for said in device.notebook.lines if said.sequence not in known)
        print_lines(settings, [make_line(device, said) for said in fresh])

    run_online(name, work)


@group.command(params=[*DEVICE_OPTIONS])
@click.argument("name")
@click.pass_obj
def create(settings: Settings, device: str, name: str) -> None:
    """Begin a group with this device, and its linked ones, as members."""

    def make(own: Device) -> tuple[Operation, tuple[bytes, ...]]:
        if not is_name(name):
            message = f"`{name!a}` is no name for a group"
            raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="use up to 100 printable characters")
        if any(known.name == name for known in own.notebook.conversations.groups.values()):
            message = f"there is a group `{name}` already"
            raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="choose another name")
        members = tuple(sorted({own.device_id, *own.notebook.linked.values()}))
        return Members(Group(secrets.token_bytes(GROUP_ID_BYTES), name, members)), members

    send_operation(settings, device, make)


@group.command(params=[*DEVICE_OPTIONS])
@click.argument("name")
@click.argument("contacts", nargs=-1, required=True)
@click.pass_obj
def invite(settings: Settings, device: str, name: str, contacts: tuple[str, ...]) -> None:
    """Make contacts members of a group; everybody in it learns who is in it now."""

    def make(own: Device) -> tuple[Operation, tuple[bytes, ...]]:
        known = own.notebook.conversations.find_by_name(name)
        added = [own.notebook.get_contact(contact) for contact in contacts]
        changed = change_members(known, add=[*added, *own.notebook.linked.values()])
        return Members(changed), changed.members

    send_operation(settings, device, make)


@group.command(params=[*DEVICE_OPTIONS])
@click.argument("name")
@click.argument("contacts", nargs=-1, required=True)
@click.pass_obj
def remove(settings: Settings, device: str, name: str, contacts: tuple[str, ...]) -> None:
    """Remove members; they learn that, and can read nothing that is sent after."""

    def make(own: Device) -> tuple[Operation, tuple[bytes, ...]]:
        known = own.notebook.conversations.find_by_name(name)
        gone = [own.notebook.get_contact(contact) for contact in contacts]
        return Members(change_members(known, remove=gone)), known.members

    send_operation(settings, device, make)


@group.command(params=[*DEVICE_OPTIONS])
@click.argument("name")
@click.argument("text")
@click.pass_obj
def send(settings: Settings, device: str, name: str, text: str) -> None:
    """Say something in a group; printed with its place in the order, which is the same for everybody."""

    def make(own: Device) -> tuple[Operation, tuple[bytes, ...]]:
        known = own.notebook.conversations.find_by_name(name)
        return Text(known.group, text), known.members

    send_operation(settings, device, make)


@group.command(params=[*DEVICE_OPTIONS])
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Also what was printed before.")
@click.pass_obj
def read(settings: Settings, device: str, name: str | None, everything: bool) -> None:
    """Receive, check, and print what is new, in the order that everybody sees."""

    async def work(own: Device, connection: Connection) -> None:
        shown = 0 if everything else own.get_shown()
        said = [one for one in own.notebook.lines if one.sequence > shown and name in (None, one.group.name)]
        print_lines(settings, [make_line(own, one) for one in said])
        own.note_shown()
        require_trust(own)

    run_online(device, work)


@group.command(params=[*DEVICE_OPTIONS])
@click.pass_obj
def status(settings: Settings, device: str) -> None:
    """Bring the device up to date and print what is confirmed, what waits, and whether anybody lied."""
    run_online(device, do_nothing)
    with use_device(device) as own:
        groups = {one.name: len(one.members) for one in own.notebook.conversations.groups.values()}
        peers = own.client.histories.transcripts
        record = {
            "device": device,
            "groups": ", ".join(f"{name} ({count})" for name, count in groups.items()),
            "messages": len(own.notebook.lines),
            "not yet confirmed by": ", ".join(map(own.notebook.get_name, peers)),
            "waiting to be sent": len(own.client.outbox.drafts) + len(own.client.outbox.outgoing),
            "asked for evidence": ", ".join(map(own.notebook.get_name, own.client.doubts.asked)),
            "proofs": len(own.get_proofs()),
            "state": "stopped: somebody lied or is asked" if own.client.is_suspended else "all is well",
        }
    shown = {name: str(value) or "-" for name, value in record.items()}
    emit(settings.as_json, {name.replace(" ", "_"): value for name, value in record.items()}, format_record(shown))


@group.command(params=[*DEVICE_OPTIONS])
@click.argument("contacts", nargs=-1)
@click.pass_obj
def verify(settings: Settings, device: str, contacts: tuple[str, ...]) -> None:
    """Print safety numbers: equal on both screens means nobody stands between the two devices."""
    with use_device(device) as own:
        names = contacts or tuple(sorted(own.notebook.contacts))
        numbers = {name: compute_safety_number(own.device_id, own.notebook.get_contact(name)) for name in names}
    emit(settings.as_json, numbers, format_table([("contact", "safety number"), *numbers.items()]))

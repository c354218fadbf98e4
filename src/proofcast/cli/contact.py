"""`proofcast contact`: whom this device writes to."""

import click

from proofcast.cli.connection import Settings
from proofcast.cli.device_session import DEVICE_OPTIONS, use_device
from proofcast.cli.output import emit, format_table, note
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.groups.conversation import is_name
from proofcast.groups.identity import compute_fingerprint, encode_address, parse_address
from proofcast.groups.notebook import CONTACT


@click.group()
def contact() -> None:
    """Name the devices of other people."""


@contact.command(params=[*DEVICE_OPTIONS])
@click.argument("name")
@click.argument("address")
@click.option("--fingerprint", help="As its owner reads it to you; refused where it differs.")
@click.pass_obj
def add(settings: Settings, device: str, name: str, address: str, fingerprint: str | None) -> None:
    """Name a device by its address, which its owner gave you directly: as text, or as a QR code you scanned."""
    other = parse_address(address)
    true = compute_fingerprint(other)
    if fingerprint is not None and "".join(fingerprint.split()) != "".join(true.split()):
        message = f"the address has the fingerprint `{true}`, not `{fingerprint}`"
        raise InvalidInput(Reason.DISAGREES, message, hint="somebody gave you another address: get it again, directly")
    if not is_name(name):
        raise InvalidRequest(Reason.BAD_ARGUMENT, f"`{name!a}` is no name", hint="use up to 100 printable characters")
    with use_device(device) as own:
        refuse_taken(own.notebook.contacts, name, other)
        own.vault.write({CONTACT + name: other})
    if fingerprint is None:
        note(f"compare the fingerprint with {name}, aloud or on paper, before you trust it")
    emit(settings.as_json, {"name": name, "fingerprint": true, "checked": fingerprint is not None}, true)


def refuse_taken(contacts: dict[str, bytes], name: str, other: bytes) -> None:
    """A name never changes whom it means behind the owner's back."""
    if contacts.get(name, other) != other:
        message = f"`{name}` is `{encode_address(contacts[name])}` already"
        raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="give the new device another name")


@contact.command(name="list", params=[*DEVICE_OPTIONS])
@click.pass_obj
def list_contacts(settings: Settings, device: str) -> None:
    """Print names, addresses and fingerprints."""
    with use_device(device) as own:
        contacts = own.notebook.contacts
    rows = [(name, encode_address(other), compute_fingerprint(other)) for name, other in sorted(contacts.items())]
    records = [{"name": name, "address": address, "fingerprint": mark} for name, address, mark in rows]
    emit(settings.as_json, records, format_table([("name", "address", "fingerprint"), *rows]))

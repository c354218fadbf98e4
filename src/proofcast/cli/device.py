"""`proofcast device`: the identity of this device, and the owner's other devices."""

import asyncio
import io
from pathlib import Path

import aiohttp
import click
import segno

from proofcast.cli.connection import JSON_OPTION, Settings
from proofcast.cli.device_session import (
    DEVICE_OPTIONS,
    do_nothing,
    get_device_path,
    list_device_paths,
    parse_device_name,
    read_password,
    run_online,
    use_device,
)
from proofcast.cli.output import emit, format_record, note
from proofcast.errors import InvalidRequest, Reason
from proofcast.groups.identity import compute_fingerprint, encode_address, parse_address
from proofcast.groups.io.connection import get_server
from proofcast.groups.io.device import Device, create_device, follow
from proofcast.groups.notebook import LINKED

DEFAULT_SERVER = "http://127.0.0.1:8470"


@click.group()
def device() -> None:
    """Make and show the identities of this machine's devices."""


@device.command(params=[JSON_OPTION])
@click.argument("name", default="default", callback=parse_device_name)
@click.option("--server", "url", default=DEFAULT_SERVER, show_default=True, envvar="PROOFCAST_GROUP_SERVER")
@click.option("--server-key", help="Its key, as its operator published it; else the one it shows is taken.")
@click.pass_obj
def new(settings: Settings, name: str, url: str, server_key: str | None) -> None:
    """Make a device and register it with its server; its file is encrypted with a password."""
    refuse_existing(name)
    key = parse_server_key(server_key) if server_key else asyncio.run(fetch_server_key(url))
    with create_device(get_device_path(name), read_password(is_new=True), url, key).vault:
        pass
    if server_key is None:
        note(f"trusting the server key {key.hex()}, because it was shown first: compare it with its operator's")
    run_online(name, do_nothing)
    with use_device(name) as made:
        show_device(settings, name, made)


@device.command(name="follow", params=[*DEVICE_OPTIONS])
@click.argument("name", callback=parse_device_name)
@click.argument("statement", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--server", "url", default=DEFAULT_SERVER, show_default=True, envvar="PROOFCAST_GROUP_SERVER")
@click.pass_obj
def follow_server(settings: Settings, device: str, name: str, statement: Path, url: str) -> None:
    """Make NAME: the same address and contacts, at the server that STATEMENT names as the successor of its own."""
    refuse_existing(name)
    with use_device(device) as own:
        data = read_statement(statement)
        with follow(get_device_path(name), read_password(), url, own, data).vault:
            pass
    run_online(name, do_nothing)
    with use_device(name) as made:
        show_device(settings, name, made)


def refuse_existing(name: str) -> None:
    if get_device_path(name).exists():
        message = f"there is a device `{name}` already"
        raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="choose another name")


def read_statement(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"`{path}` cannot be read: {error.strerror}"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="name the file that `group retire` wrote") from None


def parse_server_key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        key = b""
    if len(key) != 32:
        raise InvalidRequest(Reason.BAD_KEY, f"`{text}` is no server key", hint="it has 64 hexadecimal digits")
    return key


async def fetch_server_key(url: str) -> bytes:
    async with aiohttp.ClientSession() as session:
        return (await get_server(session, url)).server_key


def show_device(settings: Settings, name: str, shown: Device) -> None:
    record = {
        "name": name,
        "address": encode_address(shown.device_id),
        "fingerprint": compute_fingerprint(shown.device_id),
        "server": shown.server_url,
        "server key": shown.client.server_key.hex(),
    }
    emit(settings.as_json, {key.replace(" ", "_"): value for key, value in record.items()}, format_record(record))


@device.command(params=[*DEVICE_OPTIONS])
@click.option("--qr", is_flag=True, help="Draw the address as a QR code, to be scanned from this screen.")
@click.pass_obj
def show(settings: Settings, device: str, qr: bool) -> None:
    """Print this device's address, which others need to write to it, and its fingerprint, to be compared aloud."""
    with use_device(device) as shown:
        show_device(settings, device, shown)
        if qr:
            click.echo(draw_qr(encode_address(shown.device_id)))


def draw_qr(address: str) -> str:
    """Half blocks, two rows of the code to a line."""
    drawing = io.StringIO()
    segno.make(address, error="m").terminal(out=drawing, compact=True)
    return drawing.getvalue()


@device.command(params=[*DEVICE_OPTIONS])
@click.argument("name")
@click.argument("address")
@click.pass_obj
def link(settings: Settings, device: str, name: str, address: str) -> None:
    """Call another device your own: groups that you create or change include it."""
    other = parse_address(address)
    with use_device(device) as own:
        if other == own.device_id:
            raise InvalidRequest(Reason.BAD_ARGUMENT, f"`{address}` is this device", hint="link the other one")
        own.vault.write({LINKED + name: other})
    emit(settings.as_json, {"name": name, "fingerprint": compute_fingerprint(other)}, compute_fingerprint(other))


@device.command(name="list", params=[*DEVICE_OPTIONS])
@click.pass_obj
def list_devices(settings: Settings, device: str) -> None:
    """Print the devices of this machine, and those that are linked with `--device`."""
    local = [path.name.removesuffix(".device") for path in list_device_paths()]
    linked: dict[str, bytes] = {}
    if device in local:
        with use_device(device) as own:
            linked = own.notebook.linked
    addresses = {name: encode_address(other) for name, other in linked.items()}
    lines = [*local, *(f"{name} (linked) {address}" for name, address in addresses.items())]
    emit(settings.as_json, {"local": local, "linked": addresses}, "\n".join(lines))

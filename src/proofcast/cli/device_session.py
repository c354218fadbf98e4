"""Options that every command of a device shares, and what they lead to: its file, its connection, what happened."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from proofcast.cli.connection import JSON_OPTION, PASSWORD_VARIABLE, get_state_folder
from proofcast.cli.output import note
from proofcast.errors import InvalidInput, InvalidRequest, Misbehaviour, Reason, Unavailable
from proofcast.groups.io.connection import Connection, connect
from proofcast.groups.io.device import Device, open_device
from proofcast.groups.proof import verify_proof

DEVICE_VARIABLE = "PROOFCAST_DEVICE"
DEVICE_FORM = re.compile(r"[A-Za-z0-9_.-]{1,64}")
SUFFIX = ".device"


def parse_device_name(context: click.Context, parameter: click.Parameter, name: str) -> str:
    if not DEVICE_FORM.fullmatch(name) or name.startswith("."):
        message = f"`{name}` is no name for a device"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="use letters, digits, `_`, `-` and `.`")
    return name


DEVICE_OPTION = click.Option(
    ["--device"],
    default="default",
    show_default=True,
    envvar=DEVICE_VARIABLE,
    callback=parse_device_name,
    help=f"Name of this device's file; else ${DEVICE_VARIABLE}.",
)
DEVICE_OPTIONS = [DEVICE_OPTION, JSON_OPTION]


def get_device_path(name: str) -> Path:
    return get_state_folder() / "groups" / f"{name}{SUFFIX}"


def list_device_paths() -> list[Path]:
    return sorted((get_state_folder() / "groups").glob(f"*{SUFFIX}"))


def read_password(*, is_new: bool = False) -> str:
    """Of the device's file."""
    known = os.environ.get(PASSWORD_VARIABLE)
    return known or str(click.prompt("password", hide_input=True, err=True, confirmation_prompt=is_new))


@contextmanager
def use_device(name: str) -> Iterator[Device]:
    """The device alone, without its server."""
    device = open_device(get_device_path(name), read_password())
    with device.vault:
        yield device


def run_online(name: str, work: Callable[[Device, Connection], Awaitable[None]]) -> None:
    """Connect the device, bring it up to date, do the work, and tell what went wrong."""

    async def run(device: Device) -> None:
        async with connect(device.server_url, device.client.server_key, device.identity) as connection:
            await device.sync(connection)
            await work(device, connection)

    with use_device(name) as device:
        known = len(device.notebook.incidents)
        try:
            asyncio.run(run(device))
        finally:
            for incident in device.notebook.incidents[known:]:
                note(f"! {incident}")


def require_trust(device: Device) -> None:
    """Raise, in clear words, where the device has stopped believing somebody."""
    if not device.client.is_suspended:
        return
    if device.client.doubts.asked:
        names = ", ".join(map(device.notebook.get_name, device.client.doubts.asked))
        message = f"a message does not fit, and `{names}` is asked for evidence"
        raise Unavailable(Reason.NOT_YET, message, hint="nothing new is shown until the answer comes: read again later")
    proofs = device.get_proofs()
    if proofs:
        sentence = verify_proof(proofs[-1], device.client.server_key).sentence
        hint = "`proofcast group prove FILE` writes the proof for others; `proofcast group recover` goes on"
        raise Misbehaviour(Reason.DISAGREES, f"your server lied: {sentence}", hint=hint, evidence=proofs[-1])
    message = "somebody lied, and it cannot be shown to others; the last incident is: " + device.notebook.incidents[-1]
    raise InvalidInput(Reason.DISAGREES, message, hint="`proofcast group recover` goes on")


async def do_nothing(device: Device, connection: Connection) -> None:
    """For those who only want to be up to date."""

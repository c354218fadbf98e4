"""The commands about witnesses: be one, and demand them."""

import asyncio
from pathlib import Path

import click

from proofcast.cli.connection import JSON_OPTION, Settings, get_state_folder
from proofcast.cli.device import DEFAULT_SERVER, parse_server_key
from proofcast.cli.device_session import DEVICE_OPTIONS, use_device
from proofcast.cli.output import emit, note
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.groups.io.watch import Watch, open_watch
from proofcast.groups.witness import Quorum

LOOK_S = 1.0
"""An idle server closes an epoch a second."""
WITNESSES_MAX = 100


@click.command(params=[JSON_OPTION])
@click.option("--server", "url", default=DEFAULT_SERVER, show_default=True, envvar="PROOFCAST_GROUP_SERVER")
@click.option("--server-key", help="Of the server to watch.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Its key, and what it signed last.")
@click.option("--once", is_flag=True, help="Look once instead of once a second.")
@click.pass_obj
def witness(settings: Settings, url: str, server_key: str | None, folder: Path | None, once: bool) -> None:
    """Watch a server, and sign one checkpoint per epoch, each continuing the last, until Ctrl-C.

    Without a server to watch, print the witness's key, which is made where there is none.
    """
    key = parse_server_key(server_key) if server_key else b""
    with open_watch(folder or get_state_folder() / "witness", url, key) as watch:
        if not key:
            emit(settings.as_json, {"witness": watch.key.hex()}, watch.key.hex())
            return
        try:
            asyncio.run(look_once(watch) if once else look_forever(watch))
        except KeyboardInterrupt:
            note("stopped")


async def look_once(watch: Watch) -> None:
    note(f"cosigned {await watch.look()} checkpoints")


async def look_forever(watch: Watch) -> None:
    """A server that does not answer is tried again; one that shows two chains ends the watch."""
    while True:
        try:
            await watch.look()
        except Unavailable as error:
            note(f"! {error}")
        await asyncio.sleep(LOOK_S)


@click.command(params=[*DEVICE_OPTIONS])
@click.argument("witnesses", nargs=-1)
@click.option("--quorum", type=click.IntRange(0, WITNESSES_MAX), help="How many of them; else more than half.")
@click.pass_obj
def demand(settings: Settings, device: str, witnesses: tuple[str, ...], quorum: int | None) -> None:
    """Believe an epoch only when enough of WITNESSES, given by their keys, have signed it; without any, as before."""
    keys = tuple(sorted({parse_server_key(one) for one in witnesses}))
    count = len(keys) // 2 + bool(keys) if quorum is None else quorum
    if not count <= len(keys) <= WITNESSES_MAX or (keys and not count):
        message = f"`{count}` of `{len(keys)}` witnesses cannot be demanded"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="name at least as many keys as `--quorum` says")
    with use_device(device) as own:
        own.demand_witnesses(Quorum(keys, count))
    emit(
        settings.as_json,
        {"witnesses": [key.hex() for key in keys], "quorum": count},
        f"{count} of {len(keys)} witnesses",
    )

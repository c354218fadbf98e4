"""`proofcast group serve`: the server, honest; or, to see it caught, one that lies once."""

from contextlib import suppress
from pathlib import Path

import click
import uvloop

from proofcast.cli.connection import JSON_OPTION, Settings, get_state_folder
from proofcast.cli.device import parse_server_key
from proofcast.cli.group_proof import write_file
from proofcast.cli.output import emit, note
from proofcast.groups.io.processes import Options
from proofcast.groups.io.retirement import retire as end_server
from proofcast.groups.io.sequencer import Running, run_server
from proofcast.testing.groups.lies import ServerLie
from proofcast.testing.groups.serving import Plan, run_lying_server

DEFAULT_PORT = 8470
SHARDS_MAX = 64
LIES = {lie.name.lower().replace("_", "-"): lie for lie in ServerLie}


@click.command(params=[JSON_OPTION])
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Its key and logs.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Beyond loopback, put a TLS proxy before it.")
@click.option("--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True, help="0: any.")
@click.option("--shards", type=click.IntRange(1, SHARDS_MAX), default=1, show_default=True, help="On following ports.")
@click.option("--public", default="", help="Address of the proxy, e.g. `https://groups.example/{shard}`.")
@click.option("--epoch-ms", type=click.IntRange(1, 10_000), default=20, show_default=True, help="At least, per frame.")
@click.option("--witness", "witnesses", multiple=True, help="Key of a witness whose signatures are handed out.")
@click.option("--lie", type=click.Choice(sorted(LIES)), help="Demonstration: lie once, in memory, and be caught.")
@click.option("--victim", type=int, default=2, show_default=True, help="To which device, in order of registration.")
@click.option("--after", type=int, default=2, show_default=True, help="After how many of its packets.")
@click.pass_obj
def serve(
    settings: Settings,
    folder: Path | None,
    host: str,
    port: int,
    shards: int,
    public: str,
    epoch_ms: int,
    witnesses: tuple[str, ...],
    lie: str | None,
    victim: int,
    after: int,
) -> None:
    """Order and keep sealed messages for devices, until Ctrl-C or SIGTERM."""
    path = str(folder or get_state_folder() / "group-server")
    keys = tuple(parse_server_key(one).hex() for one in witnesses)
    options = Options(path, shards, host, port, public, epoch_ms / 1000, witnesses=keys)

    def announce(running: Running) -> None:
        text = f"serving at {' '.join(running.urls)}\nserver key {running.server_key.hex()}"
        emit(settings.as_json, running, text)

    if lie is None:
        uvloop.run(run_server(options, announce))
        note("stopped")
        return
    note(f"this server will lie: {LIES[lie].value}")
    with suppress(KeyboardInterrupt):
        uvloop.run(run_lying_server(options, Plan(LIES[lie], victim, after), announce))


@click.command(params=[JSON_OPTION])
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Of the server that ends.")
@click.option("--successor", required=True, help="The key of the server that comes after it.")
@click.pass_obj
def retire(settings: Settings, file: Path, folder: Path | None, successor: str) -> None:
    """End a server, and write to FILE what its key says about the next one; devices follow with `device follow`."""
    data = end_server(folder or get_state_folder() / "group-server", parse_server_key(successor))
    write_file(file, data)
    emit(settings.as_json, {"file": str(file), "successor": successor}, f"{file}: followed by {successor}")

"""`proofcast up`: chain, contracts, pipeline, broker and dashboard, in one command and one data folder."""

import asyncio
import os
import re
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from proofcast.chain.io.rpc import RpcClient
from proofcast.cli.connection import STATE_VARIABLE
from proofcast.cli.output import note
from proofcast.cli.values import ADDRESS
from proofcast.compose.io.processes import Processes
from proofcast.compose.plan import Wishes, build_plan
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.onchain.abi import format_value
from proofcast.onchain.io.artefacts import get_contracts, get_exchanges
from proofcast.onchain.io.reading import find_creation_block, require_contract
from proofcast.pipeline.io.lock import held

LOOPBACK = "127.0.0.1"
EXPORT = re.compile(r"^export PROOFCAST_\w+=\S+$", re.MULTILINE)
NAME_WIDTH = 10


@click.command()
@click.option("--data", "folder", type=click.Path(path_type=Path), default="proofcast-data", show_default=True)
@click.option("--rpc", "nodes", multiple=True, help="Node to follow instead of a development chain; repeatable.")
@click.option("--trust", type=click.Choice(["linked", "agreed"]), help="Demanded of nodes; `agreed` where several are.")
@click.option("--first", type=click.IntRange(min=0), help="First block wanted of a node's chain.")
@click.option("--topics", type=ADDRESS, help="`Topics`, where it is not at its usual address.")
@click.option("--address", "contracts", type=ADDRESS, multiple=True, help="Logs of this contract too; repeatable.")
@click.option(
    "--allow-receiver", "receivers", multiple=True, help="Private address that webhooks may go to; repeatable."
)
@click.option(
    "--peer",
    "peers",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Peer's folder, for the dashboard; repeatable.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The broker's; beyond loopback there must be a key."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Of the broker.")
@click.option("--chain-port", type=click.IntRange(0, 65535), default=8545, show_default=True, help="Of our own chain.")
@click.option("--block-time", type=click.IntRange(min=1), help="Seconds between blocks of our own chain.")
@click.option("--master", default="local[*]", show_default=True, help="Spark's: `local[2]`, `spark://host:7077`.")
def up(
    folder: Path,
    nodes: tuple[str, ...],
    trust: str | None,
    first: int | None,
    topics: bytes | None,
    contracts: tuple[bytes, ...],
    receivers: tuple[str, ...],
    peers: tuple[Path, ...],
    host: str,
    port: int,
    chain_port: int,
    block_time: int | None,
    master: str,
) -> None:
    """Run everything until Ctrl-C: chain, contracts, pipeline, broker, dashboard. The same folder goes on later."""
    own = get_contracts(topics).topics
    if nodes:
        first = find_first(nodes[0], own) if first is None else first
    wishes = Wishes(
        folder.resolve(),
        host,
        choose_port(host, port),
        chain_port if nodes else choose_port(LOOPBACK, chain_port),
        nodes,
        first,
        trust or ("agreed" if len(nodes) > 1 else "linked"),
        block_time,
        master,
        format_value(topics) if topics else "",
        tuple(map(format_value, (own, get_exchanges(own), *contracts))) if nodes or contracts else (),
        receivers,
        tuple(str(folder.resolve()) for folder in peers),
    )
    with ExitStack() as stack:
        try:
            stack.enter_context(held(str(folder)))
        except InvalidRequest as error:
            raise InvalidRequest(
                Reason.FENCED, f"another `proofcast up` runs on `{folder}`", hint="end it, or name another `--data`"
            ) from error
        run(wishes, folder)


def run(wishes: Wishes, folder: Path) -> None:
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    environment = os.environ | {STATE_VARIABLE: str(wishes.folder / "state")}

    def tell_ready() -> None:
        """For a shell to read: `eval "$(...)"`, or a file to source."""
        kept = logs / "chain.log"
        for line in dict.fromkeys(EXPORT.findall(kept.read_text())[-2:]) if not wishes.nodes else ():
            click.echo(line)
        click.echo(f"export PROOFCAST_BROKER_URL=http://{wishes.host}:{wishes.port}")
        say("dashboard", f"http://{wishes.host}:{wishes.port}/; everything is in {folder}; Ctrl-C ends it")

    failure = asyncio.run(Processes(build_plan(wishes), logs, environment, say, tell_ready).run())
    if failure:
        raise Unavailable(Reason.NO_ANSWER, failure.message, hint=f"{failure.hint} (logs are in `{logs}`)")


def say(name: str, text: str) -> None:
    with suppress(BrokenPipeError):  # whoever read our log has gone: that is no reason to leave processes behind
        note(f"{name.ljust(NAME_WIDTH)}{text}")


def find_first(node: str, topics: bytes) -> int:
    """The block in which `Topics` came to be: nothing of interest is before it."""
    with RpcClient(node) as rpc:
        require_contract(rpc, topics, "Topics")
        return find_creation_block(rpc, topics)


def choose_port(host: str, port: int) -> int:
    """The port itself, or a free one for 0: a component that is started again must be found where it was."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"`{host}:{port}` cannot be listened at (`{error.strerror}`)",
                hint="name another `--port` or `--chain-port`; 0 takes a free one",
            ) from error
        return int(probe.getsockname()[1])

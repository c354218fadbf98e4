"""`proofcast broker`: verified events to whoever subscribes."""

import asyncio
import signal
from importlib import resources
from pathlib import Path
from typing import Unpack

import click
import uvloop
from aiohttp import web

from proofcast.broker.io.door import STORE
from proofcast.broker.io.http import STORE_FILE, Settings, build_runner
from proofcast.broker.io.routes.dashboard import DASHBOARD
from proofcast.broker.io.routes.peers import PEERS
from proofcast.broker.io.store.database import is_made
from proofcast.broker.io.store.durable import Store
from proofcast.cli.broker_serving import ServeOptions, add_options, build_settings
from proofcast.cli.output import note
from proofcast.cli.settings_file import CHECK, CONFIG
from proofcast.cli.stores import REQUIRED_STORE, STORE_OPTION, use_store
from proofcast.cli.values import ADDRESS
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.onchain.io.artefacts import get_contracts

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@click.group()
def broker() -> None:
    """Serve verified events to subscribers."""


@broker.command()
@CONFIG
@CHECK
@click.option("--feed", type=click.Path(path_type=Path), required=True, help="Folder that `pipeline follow` writes.")
@click.option("--topics", type=ADDRESS, help="`Topics`, where it is not at its usual address.")
@STORE_OPTION
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen at; beyond loopback there must be a key."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@add_options
def serve(
    check: bool, feed: Path, topics: bytes | None, store: str, host: str, port: int, **options: Unpack[ServeOptions]
) -> None:
    """Serve what is in a feed, and what comes into it, until interrupted."""
    settings = build_settings(store, options)
    if check:
        verify_before(host, settings.store or str(feed / STORE_FILE))
        note("everything given is right")
        return
    serving = serve_until_interrupted(feed, get_contracts(topics).topics, settings, host, port, options["peers"])
    uvloop.run(serving)


async def serve_until_interrupted(
    feed: Path, topics: bytes, settings: Settings, host: str, port: int, peers: tuple[Path, ...]
) -> None:
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    runner = build_runner(feed, topics, settings)
    runner.app[DASHBOARD] = Path(str(resources.files("proofcast.dashboard")))
    runner.app[PEERS] = peers
    await runner.setup()
    try:
        await verify_host(host, runner.app[STORE])
        await listen(runner, host, port)
        note(f"events at http://{host}:{runner.addresses[0][1]}/api/v1/events/stream; Ctrl-C ends it")
        await interrupted.wait()
    finally:
        await runner.cleanup()


def verify_before(host: str, store: str) -> None:
    """As `verify_host`, and without making a store where there is none yet."""
    if is_made(store):
        use_store(store, lambda opened: verify_host(host, opened))
    elif host not in LOOPBACK:
        raise refuse_without_key(host)


async def verify_host(host: str, store: Store) -> None:
    """Beyond this machine only those are served who have a key."""
    if host not in LOOPBACK and not await store.find_keys():
        raise refuse_without_key(host)


def refuse_without_key(host: str) -> InvalidRequest:
    return InvalidRequest(
        Reason.NOT_ALLOWED,
        f"there is no key yet, so `{host}` is not served",
        hint="make one with `proofcast key create`, or listen at `127.0.0.1`",
    )


async def listen(runner: web.AppRunner, host: str, port: int) -> None:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise Unavailable(
            Reason.NO_ANSWER,
            f"`{host}:{port}` cannot be listened at (`{error.strerror}`)",
            hint="name another `--port`",
        ) from error


@broker.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@REQUIRED_STORE
def backup(file: Path, store: str) -> None:
    """Write subscriptions, cursors, pending deliveries, dead letters and keys into FILE, while the broker runs."""
    count = use_store(store, lambda opened: opened.back_up(file))
    note(f"{count} rows in {file}; it holds the keys of webhooks, so keep it to yourself")


@broker.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@REQUIRED_STORE
def restore(file: Path, store: str) -> None:
    """Put FILE back into an empty store, SQLite or PostgreSQL; what was delivered since comes again."""
    count = use_store(store, lambda opened: opened.restore(file))
    note(f"{count} rows restored")

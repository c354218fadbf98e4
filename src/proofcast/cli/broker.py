"""`proofcast broker`: verified events to whoever subscribes."""

import asyncio
import signal
from pathlib import Path

import click
from aiohttp import web

from proofcast.broker.io.http import build_runner
from proofcast.cli.output import note
from proofcast.cli.values import ADDRESS
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.onchain.io.artefacts import get_contracts

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@click.group()
def broker() -> None:
    """Serve verified events to subscribers."""


@broker.command()
@click.option("--feed", type=click.Path(path_type=Path), required=True, help="Folder that `pipeline follow` writes.")
@click.option("--topics", type=ADDRESS, help="`Topics`, where it is not at its usual address.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; loopback only, so far.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
def serve(feed: Path, topics: bytes | None, host: str, port: int) -> None:
    """Serve what is in a feed, and what comes into it, until interrupted."""
    if host not in LOOPBACK:
        raise InvalidRequest(
            Reason.NOT_ALLOWED,
            f"nobody is asked for a key yet, so `{host}` is not served",
            hint="listen at `127.0.0.1` and put a reverse proxy that checks callers before it",
        )
    asyncio.run(serve_until_interrupted(feed, get_contracts(topics).topics, host, port))


async def serve_until_interrupted(feed: Path, topics: bytes, host: str, port: int) -> None:
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    runner = build_runner(feed, topics)
    await runner.setup()
    try:
        await listen(runner, host, port)
        note(f"events at http://{host}:{runner.addresses[0][1]}/api/v1/events/stream; Ctrl-C ends it")
        await interrupted.wait()
    finally:
        await runner.cleanup()


async def listen(runner: web.AppRunner, host: str, port: int) -> None:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise Unavailable(
            Reason.NO_ANSWER,
            f"`{host}:{port}` cannot be listened at (`{error.strerror}`)",
            hint="name another `--port`",
        ) from error

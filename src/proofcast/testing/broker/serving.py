"""A broker at a real socket, in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from proofcast.broker.io.http import DEFAULTS, Settings, build_runner

TOPICS = b"\1" * 20
"""Where the contract is."""


@asynccontextmanager
async def open_broker(folder: Path, settings: Settings = DEFAULTS) -> AsyncIterator[str]:
    """Over the feed in this folder; its address."""
    runner = build_runner(folder, TOPICS, settings)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()

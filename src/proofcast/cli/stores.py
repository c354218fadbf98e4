"""Commands that use a broker's store themselves, whether or not a broker runs on it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from proofcast.broker.io.store.durable import Store

HELP = "SQLite file, or `postgresql://...`; an address with a password belongs into PROOFCAST_STORE."
STORE_OPTION = click.option(
    "--store", envvar="PROOFCAST_STORE", default="", help=f"{HELP}  [default: `broker.sqlite` in the feed's folder]"
)
REQUIRED_STORE = click.option("--store", envvar="PROOFCAST_STORE", required=True, help=HELP)
Result = TypeVar("Result")


def use_store(address: str, operation: Callable[[Store], Awaitable[Result]]) -> Result:
    async def perform() -> Result:
        store = Store(address)
        try:
            return await operation(store)
        finally:
            await store.close()

    return asyncio.run(perform())

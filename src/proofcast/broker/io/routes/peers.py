"""Peers of the overlay beside this broker, for the dashboard's graph: each is asked by its local socket."""

import asyncio
from pathlib import Path

from aiohttp import web

from proofcast.broker.io.door import answer
from proofcast.errors import ProofcastError
from proofcast.overlay.io.control import ask
from proofcast.overlay.io.options import SOCKET_NAME

PEERS = web.AppKey("peers", tuple[Path, ...])
"""Folders of the peers; none where nobody named one."""
NEIGHBOURS_MAX = 100
"""Of one peer; a graph of more says nothing."""


def add_routes(application: web.Application) -> None:
    application.router.add_get("/api/v1/peers", show_peers)


async def show_peers(request: web.Request) -> web.Response:
    folders = request.app.get(PEERS, ())
    return answer({"peers": await asyncio.gather(*(asyncio.to_thread(describe_peer, one) for one in folders))})


def describe_peer(folder: Path) -> dict[str, object]:
    """What it says of itself; one that is not running has a name and a problem only."""
    try:
        status = ask(folder / SOCKET_NAME, {"do": "status"})
    except ProofcastError as error:
        return {"name": folder.name, "problem": str(error)}
    neighbours = [one["peer"] for one in status["neighbours"][:NEIGHBOURS_MAX]]
    told = {name: status[name] for name in ("peer", "address", "known", "delivered", "subscriptions")}
    return {"name": folder.name, "neighbours": neighbours} | told

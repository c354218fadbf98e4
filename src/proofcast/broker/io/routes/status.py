"""What this broker is: its routes, the newest verified blocks, the topics it has seen."""

from aiohttp import web

from proofcast import __version__
from proofcast.broker.io.door import HUB, answer, describe
from proofcast.event import Finality


def add_routes(application: web.Application) -> None:
    application.router.add_get("/api/v1", list_routes)
    application.router.add_get("/api/v1/status", show_status)
    application.router.add_get("/api/v1/topics", list_topics)


async def list_routes(request: web.Request) -> web.Response:
    routes = {route.resource.canonical for route in request.app.router.routes() if route.resource}
    return answer({"version": __version__, "routes": sorted(routes)})


async def show_status(request: web.Request) -> web.Response:
    history = request.app[HUB].history
    newest = {level: history.get_newest(level).block for level in Finality}
    return answer(
        {"chain": history.get_chain_id(), "blocks": {level.value: describe(at) for level, at in newest.items()}}
    )


async def list_topics(request: web.Request) -> web.Response:
    names = request.app[HUB].catalogue.names
    return answer([{"topic": f"0x{topic.hex()}", "name": name} for topic, name in sorted(names.items())])

"""What this broker is: its routes, the newest verified blocks, the topics it has seen."""

from dataclasses import asdict
from heapq import nsmallest

from aiohttp import web

from proofcast import __version__
from proofcast.broker.io.door import HUB, WATCH, answer, describe, read_limit
from proofcast.broker.selection import TOPIC_LENGTH, encode_hex, parse_bytes
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
        {
            "chain": history.get_chain_id(),
            "blocks": {level.value: describe(at) for level, at in newest.items()},
            "reorgs": [asdict(one) for one in request.app[WATCH].list_reorgs()],
        }
    )


async def list_topics(request: web.Request) -> web.Response:
    """One page, by id; `next` is where the one after it begins."""
    after, limit = parse_bytes("topic", request.query.get("after", ""), TOPIC_LENGTH), read_limit(request.query)
    names = request.app[HUB].catalogue.names
    found = nsmallest(limit + 1, (topic for topic in names if topic > after))
    listed = [{"topic": encode_hex(topic), "name": names[topic]} for topic in found[:limit]]
    return answer({"topics": listed, "next": encode_hex(found[limit - 1]) if len(found) > limit else None})

"""Pages of events, and evidence of one."""

import asyncio

import orjson
from aiohttp import web

from proofcast.broker.io.door import (
    EVIDENCE,
    HUB,
    answer,
    describe,
    read_finality,
    read_limit,
    read_selection,
    read_start,
)
from proofcast.broker.io.evidence import parse_linked


def add_routes(application: web.Application) -> None:
    application.router.add_get("/api/v1/events", list_events)
    application.router.add_get("/api/v1/events/{id:.+}/evidence", show_evidence)


async def list_events(request: web.Request) -> web.Response:
    """One page of what a subscriber would get, and the cursor behind it."""
    limit = read_limit(request.query)
    hub, level = request.app[HUB], read_finality(request.query)
    selection = read_selection(request.query)
    view = hub.find_view(read_start(request, "oldest"), level, selection)
    way = hub.history.find_way(view, level, limit)
    entries = hub.entries.select(hub.entries.build(way, level), selection)
    page = {
        "events": [orjson.Fragment(entry.json) for entry in entries],
        "cursor": hub.build_page_cursor(way),
        "complete": way.is_complete,
        "newest": describe(way.target),
    }
    return answer(page)


async def show_evidence(request: web.Request) -> web.Response:
    trusted = parse_linked(request.query.get("trust", ""))
    maker = request.app[EVIDENCE]
    body = await asyncio.to_thread(maker.build, request.match_info["id"], trusted[0] if trusted else b"")
    return web.Response(body=body, content_type="application/octet-stream")

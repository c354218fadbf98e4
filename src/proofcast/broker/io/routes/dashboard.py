"""The dashboard's page, and the journey of an event that it shows.

The page may load nothing but its own stylesheet and script and speak with nobody but this broker.
"""

import asyncio
from pathlib import Path

from aiohttp import web

from proofcast.broker.io.door import answer
from proofcast.broker.io.journeys import JourneyReader
from proofcast.onchain.outcome import Outcome

DASHBOARD = web.AppKey("dashboard", Path)
"""Folder of the page; without it there is none."""
JOURNEYS = web.AppKey("journeys", JourneyReader)
FILES = {"/": "index.html", "/style.css": "style.css", "/script.js": "script.js"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def add_routes(application: web.Application) -> None:
    for path in FILES:
        application.router.add_get(path, show_file)
    application.router.add_get("/api/v1/events/{id:.+}/journey", show_journey)


async def show_file(request: web.Request) -> web.StreamResponse:
    folder = request.app.get(DASHBOARD)
    if folder is None:
        raise web.HTTPNotFound
    return web.FileResponse(folder / FILES[request.path], headers=HEADERS)


async def show_journey(request: web.Request) -> web.Response:
    """What became of a publication in its own transaction, one outcome for each subscribed contract."""
    return answer(await asyncio.to_thread(describe_journey, request.app[JOURNEYS], request.match_info["id"]))


def describe_journey(journeys: JourneyReader, event_id: str) -> dict[str, object]:
    journey = journeys.read(event_id)
    contracts = [
        {
            "index": index,
            "contract": encode_hex(journeys.find_subscriber(journey.topic, index)),
            "outcome": outcome.words,
        }
        for index, outcome in journey.outcomes.items()
        if outcome is not Outcome.NONE
    ]
    return {
        "transaction": encode_hex(journey.transaction_hash),
        "transaction_index": journey.transaction_index,
        "contracts": contracts,
        "remaining": journey.remaining,
    }


def encode_hex(data: bytes) -> str:
    return f"0x{data.hex()}" if data else ""

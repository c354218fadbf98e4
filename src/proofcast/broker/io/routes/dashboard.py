"""The dashboard's page, and what it shows beside events: their journeys, exchanges and queues.

The page may load nothing but its own stylesheet and script and speak with nobody but this broker.
"""

import asyncio
from pathlib import Path

from aiohttp import web

from proofcast.broker.io.books import BookReader
from proofcast.broker.io.door import HUB, answer
from proofcast.broker.io.journeys import JourneyReader
from proofcast.onchain.outcome import Outcome

DASHBOARD = web.AppKey("dashboard", Path)
"""Folder of the page; without it there is none."""
JOURNEYS = web.AppKey("journeys", JourneyReader)
BOOKS = web.AppKey("books", BookReader)
OWNER_LENGTH = 20
"""Of an id: who made it comes first."""
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
    application.router.add_get("/api/v1/exchanges", list_exchanges)


async def show_file(request: web.Request) -> web.StreamResponse:
    folder = request.app.get(DASHBOARD)
    if folder is None:
        raise web.HTTPNotFound
    return web.FileResponse(folder / FILES[request.path], headers=HEADERS)


async def show_journey(request: web.Request) -> web.Response:
    """What became of a publication or message in its own transaction, one outcome for each subscribed contract."""
    return answer(await asyncio.to_thread(describe_journey, request.app[JOURNEYS], request.match_info["id"]))


def describe_journey(journeys: JourneyReader, event_id: str) -> dict[str, object]:
    journey = journeys.read(event_id)
    contracts = [
        {
            "index": index,
            "contract": encode_hex(journeys.find_subscriber(journey.topic, index)),
            "queue": "",
            "outcome": outcome.words,
        }
        for index, outcome in journey.outcomes.items()
        if outcome is not Outcome.NONE
    ]
    contracts += [
        {"index": place, "contract": "", "queue": encode_hex(page.queue), "outcome": outcome.words}
        for page in journey.pages
        for place, outcome in enumerate(page.outcomes, start=page.first)
        if outcome is not Outcome.NONE
    ]
    return {
        "transaction": encode_hex(journey.transaction_hash),
        "transaction_index": journey.transaction_index,
        "contracts": contracts,
        "remaining": journey.remaining,
        "held": [encode_hex(queue) for queue in sorted(journey.held)],
    }


async def list_exchanges(request: web.Request) -> web.Response:
    """Exchanges with their bindings, queues with what they hold, as of the newest verified block."""
    exchanges, queues = await asyncio.to_thread(request.app[BOOKS].read)
    return answer(
        {
            "contract": encode_hex(request.app[HUB].catalogue.exchanges_address),
            "exchanges": [
                {
                    "exchange": encode_hex(one.exchange),
                    "owner": encode_hex(one.exchange[:OWNER_LENGTH]),
                    "name": one.name,
                    "open": one.is_open,
                    "messages": one.messages,
                    "bindings": [{"queue": encode_hex(queue), "key": key} for queue, key in one.bindings],
                }
                for one in exchanges
            ],
            "queues": [
                {
                    "queue": encode_hex(one.queue),
                    "owner": encode_hex(one.queue[:OWNER_LENGTH]),
                    "name": one.name,
                    "condition": one.condition.name.lower().replace("_", " "),
                    "messages": one.messages,
                    "subscribers": one.subscribers,
                    "held": one.held,
                    "held_value_wei": str(one.held_value_wei),
                }
                for one in queues
            ],
        }
    )


def encode_hex(data: bytes) -> str:
    return f"0x{data.hex()}" if data else ""

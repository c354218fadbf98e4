"""What every route finds in its application, reads from a request and answers with.

A door is a module of `routes/` with `add_routes(application)`, named in `http.DOORS`: nothing else has to change for a
new one.
"""

import asyncio
from collections.abc import Mapping

import orjson
from aiohttp import web

from proofcast.broker import start as starts
from proofcast.broker.io.custody import Custody
from proofcast.broker.io.deliveries import Deliveries
from proofcast.broker.io.evidence import EvidenceMaker
from proofcast.broker.io.hub import Hub
from proofcast.broker.io.metrics import FeedCounter, Metrics
from proofcast.broker.io.store.durable import Store
from proofcast.broker.io.watch import FeedWatch
from proofcast.broker.selection import FIELDS, Selection, parse_selection
from proofcast.chain.segment import BlockId
from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Finality

HUB = web.AppKey("hub", Hub)
EVIDENCE = web.AppKey("evidence", EvidenceMaker)
METRICS = web.AppKey("metrics", Metrics)
WATCH = web.AppKey("watch", FeedWatch)
FEED_COUNTER = web.AppKey("feed counter", FeedCounter)
STORE = web.AppKey("store", Store)
DELIVERIES = web.AppKey("deliveries", Deliveries)
CUSTODY = web.AppKey("custody", Custody)
BACKGROUND = web.AppKey("background", list[asyncio.Task[None]])
"""Tasks that must run for as long as the door is open; one that ended is a fault of ours."""
STREAMS = web.AppKey("streams", set[asyncio.Task[None]])
"""Tasks that answer for ever; they are cancelled when the door closes."""
PAGE_MAX = 1_000
"""Items of one page."""


def read_selection(query: Mapping[str, str]) -> Selection:
    return parse_selection({name: query[name] for name in FIELDS if name in query})


def read_finality(query: Mapping[str, str]) -> Finality:
    word = query.get("finality", Finality.LATEST)
    if word not in list(Finality):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, f"`{ascii(word[:64])[1:-1]}` is no finality", hint=f"known are {', '.join(Finality)}"
        )
    return Finality(word)


def read_start(request: web.Request, default: str) -> starts.Start:
    """What the client holds already goes before where it once began."""
    text = request.headers.get("Last-Event-ID") or request.query.get("start", default)
    return starts.parse_start(text)


def read_limit(query: Mapping[str, str], most: int = PAGE_MAX) -> int:
    text = query.get("limit", "100")
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= most):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, f"`{ascii(text[:64])[1:-1]}` is no page size", hint=f"write 1 to {most}"
        )
    return int(text)


def describe(block: BlockId) -> dict[str, object]:
    return {"number": block.number, "hash": f"0x{block.hash.hex()}"}


def answer(body: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json", status=status)

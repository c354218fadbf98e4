"""The HTTP door: `/api/v1`, and the stream of server-sent events.

A stream's event id is its cursor, so that a browser or client that reconnects names with `Last-Event-ID` what it holds
and goes on from there. Events of the stream: `apply` and `undo` with a CloudEvents object, `heartbeat` with the newest
verified block, `rewind` with a block above which everything held must be dropped.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import orjson
from aiohttp import web

from proofcast import __version__
from proofcast.broker import start as starts
from proofcast.broker.io.evidence import EvidenceMaker
from proofcast.broker.io.hub import Batch, Hub
from proofcast.broker.io.problems import answer_problems
from proofcast.broker.selection import FIELDS, Selection, parse_selection
from proofcast.chain.segment import BlockId
from proofcast.cursor import encode_cursor
from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Finality

HUB = web.AppKey("hub", Hub)
EVIDENCE = web.AppKey("evidence", EvidenceMaker)
STREAMS = web.AppKey("streams", set[asyncio.Task[None]])
PAGE_MAX = 1_000
SHUTDOWN_S = 5.0
"""For requests that are being answered; streams are ended at once."""
STREAM_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def build_application(folder: Path, topics_address: bytes) -> web.Application:
    application = web.Application(middlewares=[answer_problems])
    application[HUB], application[STREAMS] = Hub(folder, topics_address), set()
    application[EVIDENCE] = EvidenceMaker(folder)
    application.cleanup_ctx.append(run_hub)
    application.on_shutdown.append(end_streams)
    application.router.add_get("/api/v1", list_routes)
    application.router.add_get("/api/v1/status", show_status)
    application.router.add_get("/api/v1/topics", list_topics)
    application.router.add_get("/api/v1/events", list_events)
    application.router.add_get("/api/v1/events/stream", stream_events)
    application.router.add_get("/api/v1/events/{id:.+}/evidence", show_evidence)
    return application


async def run_hub(application: web.Application) -> AsyncIterator[None]:
    """The hub follows the feed for as long as the door is open."""
    running = asyncio.create_task(application[HUB].run())
    yield
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def end_streams(application: web.Application) -> None:
    """Streams never end by themselves, so they are ended before the door waits for requests to finish."""
    for stream in application[STREAMS]:
        stream.cancel()


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


async def list_events(request: web.Request) -> web.Response:
    """One page of what a subscriber would get, and the cursor behind it."""
    limit = read_limit(request.query)
    hub, level = request.app[HUB], read_finality(request.query)
    selection, view = read_selection(request.query), hub.find_view(read_start(request, "oldest"), level)
    way = hub.history.find_way(view, level, limit)
    entries = [
        entry for entry in hub.build_entries(way, level) if selection.matches(entry.delivery.event, hub.catalogue.names)
    ]
    page = {
        "events": [orjson.Fragment(entry.json) for entry in entries],
        "cursor": hub.build_page_cursor(way),
        "complete": way.is_complete,
        "newest": describe(way.target),
    }
    return answer(page)


async def show_evidence(request: web.Request) -> web.Response:
    body = await asyncio.to_thread(request.app[EVIDENCE].build, request.match_info["id"])
    return web.Response(body=body, content_type="application/octet-stream")


async def stream_events(request: web.Request) -> web.StreamResponse:
    hub, level = request.app[HUB], read_finality(request.query)
    selection, start = read_selection(request.query), read_start(request, starts.DEFAULT)
    batches = hub.subscribe(selection, start, level)  # an impossible start is refused here, before the stream begins
    response = web.StreamResponse(headers=STREAM_HEADERS)
    await response.prepare(request)
    stream = asyncio.create_task(write_batches(response, batches))
    request.app[STREAMS].add(stream)
    try:
        await stream
    except (asyncio.CancelledError, ConnectionResetError):
        stream.cancel()  # the reader has gone, or we close
    finally:
        request.app[STREAMS].discard(stream)
    return response


async def write_batches(response: web.StreamResponse, batches: AsyncIterator[Batch]) -> None:
    async for batch in batches:
        await response.write(encode_batch(batch))


def encode_batch(batch: Batch) -> bytes:
    if batch.rewound_to is not None:
        to = batch.rewound_to
        return b"id: %s\n" % encode_cursor(to).encode() + encode_notice(
            "rewind", BlockId(to.block_number, to.block_hash)
        )
    if batch.entries:
        return b"".join(entry.frame for entry in batch.entries)
    return encode_notice("heartbeat", batch.newest)


def encode_notice(name: str, block: BlockId) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(describe(block)))


# --- parameters


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


def read_limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", "100")
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= PAGE_MAX):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, f"`{ascii(text[:64])[1:-1]}` is no page size", hint=f"write 1 to {PAGE_MAX}"
        )
    return int(text)


def describe(block: BlockId) -> dict[str, object]:
    return {"number": block.number, "hash": f"0x{block.hash.hex()}"}


def answer(body: object) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json")


def build_runner(folder: Path, topics_address: bytes) -> web.AppRunner:
    """A server over a feed that notices at once when a reader goes."""
    return web.AppRunner(
        build_application(folder, topics_address), handler_cancellation=True, shutdown_timeout=SHUTDOWN_S
    )

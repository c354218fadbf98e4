"""The stream of server-sent events.

An event's id is its cursor, so that a browser or client that reconnects names with `Last-Event-ID` what it holds and
goes on from there. Events of the stream: `apply` and `undo` with a CloudEvents object, `heartbeat` with the newest
verified block, `rewind` with a block above which everything held must be dropped, `problem` before a stream that cannot
go on is ended; with `evidence=1` also `headers` and `evidence`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import orjson
from aiohttp import web

from proofcast.broker import start as starts
from proofcast.broker.io.door import (
    EVIDENCE,
    HUB,
    METRICS,
    STREAMS,
    describe,
    read_finality,
    read_selection,
    read_start,
)
from proofcast.broker.io.evidence import EvidenceMaker, EvidenceStream, parse_linked
from proofcast.broker.io.hub import Batch
from proofcast.broker.io.metrics import Metrics
from proofcast.broker.io.problems import describe_problem
from proofcast.broker.measures import Outcome, Transport
from proofcast.chain.segment import BlockId
from proofcast.cursor import encode_cursor
from proofcast.errors import ProofcastError

STREAM_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
WRITE_BYTES = 256 * 1024
"""After which evidence is written out before more of it is made."""


def add_routes(application: web.Application) -> None:
    application.router.add_get("/api/v1/events/stream", stream_events)


async def stream_events(request: web.Request) -> web.StreamResponse:
    hub, level = request.app[HUB], read_finality(request.query)
    selection, start = read_selection(request.query), read_start(request, starts.DEFAULT)
    evidence, response = read_evidence(request), web.StreamResponse(headers=STREAM_HEADERS)
    outlet = None if evidence else Connection(request, response)
    batches = hub.subscribe(selection, start, level, outlet)  # an impossible start is refused before the stream begins
    frames = encode_batches(batches, request.app[EVIDENCE], evidence)
    await response.prepare(request)
    stream = asyncio.create_task(write_frames(response, frames, request.app[METRICS]))
    request.app[STREAMS].add(stream)
    try:
        await stream
    except (asyncio.CancelledError, ConnectionResetError):
        stream.cancel()  # the reader has gone, or we close
    finally:
        request.app[STREAMS].discard(stream)
    return response


class Connection:
    """A stream that is up to date, written to without waking anybody; see `broker/io/outlets.py`."""

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        self._request, self._response = request, response

    def write(self, frames: bytes, count: int) -> bool:
        """As one chunk of HTTP/1.1, which is how aiohttp sends a body of unknown length."""
        transport = self._request.transport
        if transport is None or transport.is_closing():
            return False
        is_chunked = self._response.headers.get("Transfer-Encoding") == "chunked"
        transport.write(b"%x\r\n%b\r\n" % (len(frames), frames) if is_chunked else frames)
        self._request.app[METRICS].count(Transport.SSE, Outcome.SENT, count)
        return transport.get_write_buffer_size() < WRITE_BYTES


def read_evidence(request: web.Request) -> EvidenceStream | None:
    if request.query.get("evidence", "0") in ("", "0"):
        return None
    return EvidenceStream(request.app[EVIDENCE], parse_linked(request.query.get("linked", "")))


async def write_frames(
    response: web.StreamResponse, frames: AsyncIterator[tuple[bytes, int]], metrics: Metrics
) -> None:
    with metrics.connections.labels(Transport.SSE).track_inprogress():
        try:
            async for data, count in frames:
                if data:
                    await response.write(data)
                metrics.count(Transport.SSE, Outcome.SENT, count)
        except ProofcastError as error:
            await response.write(b"event: problem\ndata: %s\n\n" % orjson.dumps(describe_problem(error)))


async def encode_batches(
    batches: AsyncIterator[Batch], maker: EvidenceMaker, evidence: EvidenceStream | None
) -> AsyncIterator[tuple[bytes, int]]:
    """Bytes to write, and how many deliveries are in them."""
    async for batch in batches:
        count = len(batch.entries)
        if evidence is not None:
            pieces = evidence.encode(batch)
            while piece := await asyncio.to_thread(join_some, pieces):
                yield piece, 0
        elif batch.frames:
            yield b"".join(batch.frames), len(batch.frames)
            continue
        elif batch.entries:
            yield b"".join([entry.frame for entry in batch.entries]), count
            continue
        yield encode_notices(batch, maker), count


def join_some(pieces: Iterator[bytes]) -> bytes:
    """As many as are worth one write."""
    taken: list[bytes] = []
    length = 0
    for piece in pieces:
        taken.append(piece)
        length += len(piece)
        if length > WRITE_BYTES:
            break
    return b"".join(taken)


def encode_notices(batch: Batch, maker: EvidenceMaker) -> bytes:
    """What a batch says besides its entries."""
    if batch.rewound_to is not None:
        to = batch.rewound_to
        block = BlockId(to.block_number, to.block_hash)
        return b"id: %s\n" % encode_cursor(to).encode() + encode_notice("rewind", describe(block))
    if batch.entries:
        return b""
    time = maker.find_timestamp(batch.newest.hash)
    return encode_notice("heartbeat", describe(batch.newest) | ({} if time is None else {"time": time}))


def encode_notice(name: str, data: dict[str, object]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))

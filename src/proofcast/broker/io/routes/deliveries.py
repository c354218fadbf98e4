"""What a durable subscription delivers: fetched or streamed, acknowledged; attempts and dead letters."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress

import orjson
from aiohttp import web

from proofcast.broker import measures
from proofcast.broker.io.deliveries import LOOKS_PER_LEASE, Deliveries
from proofcast.broker.io.door import CUSTODY, DELIVERIES, HUB, METRICS, STORE, STREAMS, answer, describe, read_limit
from proofcast.broker.io.evidence import EvidenceStream
from proofcast.broker.io.routes.stream import STREAM_HEADERS, encode_notice, read_evidence
from proofcast.broker.io.routes.subscriptions import ITEM, read_object
from proofcast.broker.io.store.durable import Store
from proofcast.broker.io.store.letters import REDRIVE_MAX, Attempt, DeadLetter
from proofcast.broker.io.store.subscriptions import Holding
from proofcast.broker.measures import Outcome
from proofcast.broker.subscription import BATCH_SIZE_MAX, Pending, Status, Subscription, Transport
from proofcast.cloudevents import parse_structured
from proofcast.errors import InvalidRequest, ProofcastError, Reason
from proofcast.event import Step

WAIT_S_MAX = 30
"""Of one long poll: shorter than proxies wait."""
UNACKNOWLEDGED_MAX = 10_000
"""Deliveries of a stream; then it ends, and a client that reconnects acknowledges by `Last-Event-ID`."""
ORDINAL_MAX = 2**62


def add_routes(application: web.Application) -> None:
    router = application.router
    router.add_get(ITEM + "/events", fetch)
    router.add_get(ITEM + "/stream", stream)
    router.add_post(ITEM + "/ack", acknowledge)
    router.add_get(ITEM + "/deliveries", list_attempts)
    router.add_get(ITEM + "/dead-letters", list_dead)
    router.add_post(ITEM + "/dead-letters/redrive", redrive)


async def fetch(request: web.Request) -> web.Response:
    """The next deliveries, again and marked until they are acknowledged; `wait` seconds for the first."""
    found = await get_fetched(request)
    wait_s = read_number(request.query.get("wait", "0"), "wait", WAIT_S_MAX)
    limit = read_limit(request.query, BATCH_SIZE_MAX) if "limit" in request.query else found.terms.batch_size
    deliveries = request.app[DELIVERIES]
    pending: list[Pending] = []
    if found.status is Status.ACTIVE:
        holding = await deliveries.hold(found.name)
        try:
            pending = await read_within(deliveries, holding, limit, wait_s)
        finally:
            await asyncio.shield(deliveries.release(holding))
    request.app[METRICS].count(measures.Transport.PULL, Outcome.SENT, len(pending))
    return answer(
        {
            "events": [orjson.Fragment(one.encode()) for one in pending],
            "cursor": pending[-1].cursor if pending else None,
            "status": str(found.status),
        }
    )


async def read_within(deliveries: Deliveries, holding: Holding, limit: int, wait_s: int) -> list[Pending]:
    pending = await deliveries.read(holding, limit)
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            while not pending:
                await deliveries.wait(holding)
                pending = await deliveries.extend(holding, limit)
    return pending


async def stream(request: web.Request) -> web.StreamResponse:
    """As server-sent events. `Last-Event-ID`, or a POST to `ack`, acknowledges; a newer stream ends an older one."""
    found = await get_fetched(request)
    if request.headers.get("Last-Event-ID"):
        await acknowledge_last(request.app[STORE], found.name, request.headers["Last-Event-ID"])
    holding = await request.app[DELIVERIES].hold(found.name)
    response = web.StreamResponse(headers=STREAM_HEADERS)
    await response.prepare(request)
    task = asyncio.create_task(write_stream(request, response, holding))
    request.app[STREAMS].add(task)
    try:
        await task
    except (asyncio.CancelledError, ConnectionResetError, ProofcastError):
        task.cancel()
    finally:
        request.app[STREAMS].discard(task)
        with suppress(ProofcastError):
            await asyncio.shield(request.app[DELIVERIES].release(holding))
    return response


async def acknowledge_last(store: Store, name: str, cursor: str) -> None:
    """A browser names the last one it got, which a POST may have acknowledged long ago: then nothing is left to do."""
    try:
        await store.acknowledge_up_to(name, cursor)
    except InvalidRequest as error:
        if error.reason is not Reason.NOT_PENDING:
            raise


async def write_stream(request: web.Request, response: web.StreamResponse, holding: Holding) -> None:
    deliveries, level = request.app[DELIVERIES], holding.subscription.terms.finality
    last, unacknowledged, evidence = -1, 0, read_evidence(request)
    while unacknowledged < UNACKNOWLEDGED_MAX and await deliveries.is_kept(holding):
        pending = await deliveries.read(holding, holding.subscription.terms.batch_size, after=last)
        if not pending:
            newest = request.app[HUB].history.get_newest(level).block
            await response.write(encode_notice("heartbeat", describe(newest)))
            await wait_a_while(deliveries, holding)
            continue
        last, unacknowledged = pending[-1].ordinal, unacknowledged + len(pending)
        await response.write(await asyncio.to_thread(encode_frames, pending, evidence))
        request.app[METRICS].count(measures.Transport.SSE, Outcome.SENT, len(pending))
        if unacknowledged >= UNACKNOWLEDGED_MAX:
            unacknowledged = (await request.app[STORE].get(holding.name)).pending


async def wait_a_while(deliveries: Deliveries, holding: Holding) -> None:
    """For more to deliver, but not longer than the lease can wait."""
    with suppress(TimeoutError):
        async with asyncio.timeout(deliveries.store.lease_s / LOOKS_PER_LEASE):
            await deliveries.wait(holding)


def encode_frames(pending: Sequence[Pending], evidence: EvidenceStream | None) -> bytes:
    return b"".join(piece for one in pending for piece in encode_pending(one, evidence))


def encode_pending(one: Pending, evidence: EvidenceStream | None) -> Iterator[bytes]:
    """The frame of one delivery, after what proves it where that was asked for."""
    if evidence and one.step is Step.APPLY:
        yield from evidence.introduce(parse_structured(one.body).event.position)
    yield b"id: %s\nevent: %s\ndata: %s\n\n" % (one.cursor.encode(), one.step.encode(), one.encode())


async def acknowledge(request: web.Request) -> web.Response:
    """Everything up to the cursor is held by the subscriber; on disk when this is answered."""
    found = await read_object(request)
    name = request.match_info["name"]
    settled = await request.app[STORE].acknowledge_up_to(name, str(found.get("cursor", "")))
    request.app[METRICS].count(measures.Transport.PULL, Outcome.ACKNOWLEDGED, settled)
    return answer({"acknowledged": settled})


async def list_attempts(request: web.Request) -> web.Response:
    """Newest first."""
    limit = read_limit(request.query)
    before = read_number(request.query.get("before", str(ORDINAL_MAX)), "before", ORDINAL_MAX)
    found = await request.app[STORE].read_attempts(request.match_info["name"], before, limit)
    following = found[-1].ordinal if len(found) == limit else None
    return answer({"deliveries": [describe_attempt(one) for one in found], "next": following})


async def list_dead(request: web.Request) -> web.Response:
    limit = read_limit(request.query)
    after = read_number(request.query.get("after", "0"), "after", ORDINAL_MAX)
    found = await request.app[STORE].read_dead(request.match_info["name"], after, limit)
    following = found[-1].ordinal if len(found) == limit else None
    return answer({"dead_letters": [describe_dead(one) for one in found], "next": following})


async def redrive(request: web.Request) -> web.Response:
    """Send dead letters again, all or the `ordinals` named; what the chain took back meanwhile is dropped instead."""
    ordinals = parse_ordinals((await read_object(request)).get("ordinals")) if await request.read() else None
    redriven = await request.app[STORE].redrive(request.match_info["name"], ordinals)
    request.app[CUSTODY].notice()
    return answer({"redriven": len(redriven.ordinals), "undone": redriven.undone})


# --- requests and answers


async def get_fetched(request: web.Request) -> Subscription:
    found = await request.app[STORE].get(request.match_info["name"])
    if found.terms.transport is not Transport.PULL:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`{found.name}` is delivered by `{found.terms.transport}`",
            hint="change its transport to `pull` to fetch it",
        )
    return found


def parse_ordinals(found: object) -> list[int] | None:
    if found is None:
        return None
    if not isinstance(found, list) or len(found) > REDRIVE_MAX or not all(type(one) is int for one in found):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`ordinals` is no list of at most `{REDRIVE_MAX}` numbers",
            hint="see the list",
        )
    return found


def read_number(text: str, what: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= most):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, f"`{ascii(text[:64])[1:-1]}` is no value of `{what}`", hint=f"write 0 to {most}"
        )
    return int(text)


def describe_attempt(one: Attempt) -> dict[str, object]:
    return {
        "ordinal": one.ordinal,
        "attempt": one.number + 1,
        "event": one.event_id,
        "outcome": one.outcome,
        "detail": one.detail,
        "at": one.made_at,
    }


def describe_dead(one: DeadLetter) -> dict[str, object]:
    return {
        "ordinal": one.ordinal,
        "event": orjson.Fragment(one.body),
        "reason": one.reason,
        "attempts": one.attempts,
        "undone": one.is_undone,
        "at": one.died_at,
    }

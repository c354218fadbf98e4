"""For whoever operates the broker: is it alive, may it be asked, and its figures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from proofcast.broker.io.door import BACKGROUND, DELIVERIES, FEED_COUNTER, HUB, METRICS, WATCH, answer, describe
from proofcast.broker.io.metrics import count_events, measure_subscriptions
from proofcast.errors import Reason, Unavailable
from proofcast.event import Finality

BLOCK_AGE_S_MAX: web.AppKey[float | None] = web.AppKey("block_age_s_max")
"""Seconds after which the newest block is too old for the broker to be called ready. None does not judge: a chain that
mines on demand has blocks of any age."""


def add_routes(application: web.Application) -> None:
    application.cleanup_ctx.append(run_counter)
    application.router.add_get("/healthz", show_health)
    application.router.add_get("/readyz", show_readiness)
    application.router.add_get("/metrics", show_metrics)


async def run_counter(application: web.Application) -> AsyncIterator[None]:
    counting = asyncio.create_task(count_events(application[HUB], application[METRICS]))
    application[BACKGROUND].append(counting)
    yield
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)


async def show_health(request: web.Request) -> web.Response:
    """Refused where something has ended that must not: then a supervisor should start the broker again."""
    if any(task.done() for task in request.app[BACKGROUND]):
        raise Unavailable(
            Reason.NO_ANSWER, "the broker has stopped following its feed", hint="start it again; the log says why"
        )
    return answer({"status": "alive"})


async def show_readiness(request: web.Request) -> web.Response:
    """Refused while the feed cannot be read, or its newest block is older than allowed."""
    watch, age_s_max = request.app[WATCH], request.app[BLOCK_AGE_S_MAX]
    age_s = await asyncio.to_thread(watch.get_age_s)
    if age_s_max is not None and age_s > age_s_max:
        raise Unavailable(
            Reason.NOT_YET,
            f"the newest verified block is `{age_s:.0f}` seconds old, allowed are `{age_s_max:.0f}`",
            hint="see that what follows the chain is running and reaches its nodes",
        )
    newest = watch.get_newest(Finality.LATEST)
    return answer({"status": "ready", "newest": describe(newest), "age_s": round(age_s, 3)})


async def show_metrics(request: web.Request) -> web.Response:
    metrics = request.app[METRICS]
    with suppress(Unavailable):  # nothing is journalled yet: the counters of this process are still true
        await asyncio.to_thread(request.app[FEED_COUNTER].measure)
        await measure_subscriptions(metrics, request.app[DELIVERIES])
    return web.Response(body=metrics.write(), headers={"Content-Type": CONTENT_TYPE_LATEST})

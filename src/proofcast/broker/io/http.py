"""The HTTP door as a whole: every route module over one hub and one store, on one port."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aiohttp import web

from proofcast.broker.delivery import LADDER_S
from proofcast.broker.edge import Edge
from proofcast.broker.io import websocket
from proofcast.broker.io.access import Access, build_middleware
from proofcast.broker.io.books import BookReader
from proofcast.broker.io.custody import Custody
from proofcast.broker.io.deliveries import Deliveries
from proofcast.broker.io.door import (
    BACKGROUND,
    CUSTODY,
    DELIVERIES,
    EVIDENCE,
    FEED_COUNTER,
    HUB,
    METRICS,
    STORE,
    STREAMS,
    WATCH,
)
from proofcast.broker.io.edge import EDGE, add_headers, believe_proxies, check_origins, log_requests
from proofcast.broker.io.evidence import EvidenceMaker
from proofcast.broker.io.guard import Guard, Network
from proofcast.broker.io.hub import Hub
from proofcast.broker.io.journeys import JourneyReader
from proofcast.broker.io.kafka import KafkaSink
from proofcast.broker.io.metrics import FeedCounter, Metrics
from proofcast.broker.io.problems import answer_problems
from proofcast.broker.io.routes import dashboard, documents, events, health, peers, status, stream, subscriptions
from proofcast.broker.io.routes import deliveries as delivery_routes
from proofcast.broker.io.routes.health import BLOCK_AGE_S_MAX
from proofcast.broker.io.store.durable import Store
from proofcast.broker.io.store.subscriptions import LEASE_S
from proofcast.broker.io.watch import FeedWatch
from proofcast.broker.io.webhooks import Webhooks
from proofcast.broker.subscription import Transport
from proofcast.errors import Unavailable
from proofcast.feed.io.retention import Limits, trim_feed
from proofcast.onchain.io.artefacts import get_exchanges

STORE_FILE = "broker.sqlite"
TRIM_EVERY_S = 300.0
"""So that a feed passes its limits by minutes at most."""
SHUTDOWN_S = 5.0
"""For requests that are being answered; streams are ended at once."""
ADDRESS_LENGTH_MAX = 32_768
"""Bytes of a request's first line: every parameter at its longest, each character written as four of three."""
DOORS: tuple[Callable[[web.Application], None], ...] = (
    dashboard.add_routes,
    peers.add_routes,
    status.add_routes,
    stream.add_routes,
    events.add_routes,
    subscriptions.add_routes,
    delivery_routes.add_routes,
    health.add_routes,
    documents.add_routes,
    websocket.add_routes,
)
"""One line per route module."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator chooses."""

    store: str = ""
    """`postgresql://...` or the path of an SQLite file; empty for one beside the feed."""
    allowed_receivers: tuple[Network, ...] = ()
    """Private addresses that webhooks may go to."""
    lease_s: float = LEASE_S
    """After which another broker on the same PostgreSQL takes over from one that died."""
    ladder_s: tuple[float, ...] = LADDER_S
    """Pauses between the attempts of a webhook; after the last one a delivery is a dead letter."""
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Properties of the Kafka that subscriptions may write to, as librdkafka names them; empty where there is none."""
    edge: Edge = field(default_factory=Edge)
    """Proxies that are believed, origins whose pages may read."""
    block_age_s_max: float | None = None
    """Of the newest verified block, above which the broker is not called ready; None does not judge it."""
    kept: Limits = field(default_factory=Limits)
    """Of the feed; what is beyond is forgotten now and then."""


DEFAULTS = Settings()


def build_application(hub: Hub, store: Store, settings: Settings) -> web.Application:
    access, deliveries = Access(store), Deliveries(hub, store)
    metrics = Metrics()
    webhooks = Webhooks(deliveries, Guard(settings.allowed_receivers), metrics, settings.ladder_s)
    application = web.Application(
        middlewares=[
            log_requests,
            believe_proxies,
            answer_problems,
            check_origins,
            build_middleware(access),
            documents.check_parameters,
        ]
    )
    application[EDGE], application[BLOCK_AGE_S_MAX] = settings.edge, settings.block_age_s_max
    application.on_response_prepare.append(add_headers)
    application[HUB], application[STORE], application[STREAMS] = hub, store, set()
    application[DELIVERIES], application[BACKGROUND] = deliveries, []
    application[METRICS] = metrics
    kafka = KafkaSink(deliveries, metrics, settings.kafka)
    application[CUSTODY] = Custody(deliveries, {Transport.WEBHOOK: webhooks, Transport.KAFKA: kafka})
    application.cleanup_ctx.extend([run_store, run_hub, access.run, run_custody])
    application.on_cleanup.append(lambda _: webhooks.close())
    application.on_shutdown.append(end_streams)
    for add_routes in DOORS:
        add_routes(application)
    return application


def build_runner(folder: Path, topics_address: bytes, settings: Settings = DEFAULTS) -> web.AppRunner:
    """A server over a feed that notices at once when a reader goes."""
    store = Store(settings.store or str(folder / STORE_FILE), settings.lease_s)
    application = build_application(Hub(folder, topics_address), store, settings)
    application.cleanup_ctx.append(partial(run_retention, folder, settings.kept))
    application[EVIDENCE] = EvidenceMaker(folder)
    application[WATCH] = FeedWatch(folder)
    application[FEED_COUNTER] = FeedCounter(application[WATCH], application[METRICS])
    application[dashboard.JOURNEYS] = JourneyReader(folder, topics_address)
    application[dashboard.BOOKS] = BookReader(folder, get_exchanges(topics_address))
    application.on_cleanup.append(close_feed)
    return web.AppRunner(
        application, handler_cancellation=True, shutdown_timeout=SHUTDOWN_S, max_line_size=ADDRESS_LENGTH_MAX
    )


async def close_feed(application: web.Application) -> None:
    """The web framework remembers its applications, so that files would stay open until the process ends."""
    for reader in (EVIDENCE, WATCH, dashboard.JOURNEYS, dashboard.BOOKS):
        application[reader].close()
    application[HUB].history.close()


async def run_store(application: web.Application) -> AsyncIterator[None]:
    """Closed last of all, because everything else writes to it until it ends."""
    await application[STORE].claim()
    yield
    await application[STORE].close()


async def run_custody(application: web.Application) -> AsyncIterator[None]:
    """Subscriptions that are pushed to are looked after for as long as the door is open."""
    running = asyncio.create_task(application[CUSTODY].run())
    application[BACKGROUND].append(running)
    yield
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def run_hub(application: web.Application) -> AsyncIterator[None]:
    """The hub follows the feed for as long as the door is open."""
    running = asyncio.create_task(application[HUB].run())
    application[BACKGROUND].append(running)
    yield
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def run_retention(folder: Path, kept: Limits, application: web.Application) -> AsyncIterator[None]:
    """What is beyond the limits is forgotten, at once and every few minutes."""
    running = asyncio.create_task(trim_always(folder, kept)) if kept != Limits() else None
    if running:
        application[BACKGROUND].append(running)
    yield
    if running:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def trim_always(folder: Path, kept: Limits) -> None:
    while True:
        with suppress(Unavailable):  # nothing is journalled yet, or somebody writes for long: the next time, then
            await asyncio.to_thread(trim_feed, folder, kept, time.time())
        await asyncio.sleep(TRIM_EVERY_S)


async def end_streams(application: web.Application) -> None:
    """Streams never end by themselves, so they are ended before the door waits for requests to finish."""
    for running in application[STREAMS]:
        running.cancel()

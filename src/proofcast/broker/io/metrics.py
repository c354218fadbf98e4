"""Figures for Prometheus: counters of this process, which start at 0, and what the feed says whenever it is asked."""

import asyncio
import threading
import time
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from proofcast.broker.io.deliveries import Deliveries
from proofcast.broker.io.hub import Hub
from proofcast.broker.io.watch import FeedWatch
from proofcast.broker.measures import Outcome, ReorgMeter, Transport
from proofcast.broker.selection import Selection
from proofcast.broker.start import Newest
from proofcast.chain.steps import REORG_DEPTH_MAX
from proofcast.chain.trust import Trust
from proofcast.cloudevents import parse_structured
from proofcast.errors import Reason, Unavailable
from proofcast.event import Finality, Step
from proofcast.feed.io.sqlite import READ_MAX

RETRY_S = 1.0
"""Between looks for a feed that is not there yet."""
SUBSCRIPTIONS_MAX = 100
"""Whose lag is told, the first by name: a thousand series would cost a scrape more than they are worth."""
DEPTHS = (1, 2, 3, 5, 8, 16, 32, REORG_DEPTH_MAX)


class Metrics:
    """Every figure by its name; who has something to count calls `count`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.events = self._count("events", "Publications applied or undone.", "chain", "step")
        self.deliveries = self._count("deliveries", "Events handed on.", "transport", "outcome")
        self.blocks = self._count("blocks", "Verified blocks applied or undone.", "step", "trust")
        self.failures = self._count("feed_failures", "Polls of the follower in which nothing was believed.", "reason")
        self.connections = self._gauge("connections", "Subscribers connected now.", "transport")
        self.newest = self._gauge("newest_block", "Number of the newest verified block.", "finality")
        self.age = self._gauge("block_age_seconds", "Since the newest verified block was made.")
        self.feed_lag = self._gauge("feed_lag_steps", "Steps journalled whose events are not found yet.")
        self.lag_blocks = self._gauge(
            "subscription_lag_blocks", "From what a subscription acknowledged to the newest block.", "subscription"
        )
        self.lag_s = self._gauge(
            "subscription_lag_seconds", "Age of the oldest event that it has not acknowledged.", "subscription"
        )
        self.reorg_depth = Histogram(
            "proofcast_reorg_depth_blocks", "Blocks undone by a reorg.", buckets=DEPTHS, registry=self.registry
        )
        self._delivered: dict[tuple[Transport, Outcome], Counter] = {}
        """By their labels: looking one up costs as much as counting."""
        self._begin()

    def _count(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"proofcast_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"proofcast_{name}", meaning, labels, registry=self.registry)

    def _begin(self) -> None:
        """At 0 rather than absent: a rate over a counter that appears with its first event misses that event."""
        for transport, outcome in product(Transport, Outcome):
            self._delivered[transport, outcome] = self.deliveries.labels(transport, outcome)
        for transport in Transport:
            self.connections.labels(transport)
        for reason in (Reason.DISAGREES, Reason.NOT_YET, Reason.NO_ANSWER):
            self.failures.labels(reason)
        for step, trust in product((Step.APPLY, Step.UNDO), Trust):
            self.blocks.labels(step, trust)

    def count(self, transport: Transport, outcome: Outcome, deliveries: int) -> None:
        self._delivered[transport, outcome].inc(deliveries)

    def write(self) -> bytes:
        """As the text that Prometheus reads."""
        return generate_latest(self.registry)


async def count_events(hub: Hub, metrics: Metrics) -> None:
    """Follow every publication, as any subscriber does, until cancelled."""
    while True:
        try:
            chain = str(hub.history.get_chain_id())
            for step in (Step.APPLY, Step.UNDO):
                metrics.events.labels(chain, step)
            async for batch in hub.subscribe(Selection(), Newest(), Finality.LATEST):
                for entry in batch.entries:
                    metrics.events.labels(chain, entry.delivery.event.step).inc()
        except Unavailable:
            await asyncio.sleep(RETRY_S)


async def measure_subscriptions(metrics: Metrics, deliveries: Deliveries) -> None:
    """How far stored subscriptions are behind; in seconds it is the age of the oldest event not yet acknowledged."""
    metrics.lag_blocks.clear()
    metrics.lag_s.clear()
    for one in await deliveries.store.find_all(limit=SUBSCRIPTIONS_MAX):
        waiting = await deliveries.store.read_pending(one.name, limit=1)
        made_at = parse_structured(waiting[0].body).event.timestamp if waiting else time.time()
        metrics.lag_blocks.labels(one.name).set(deliveries.compute_lag(one))
        metrics.lag_s.labels(one.name).set(max(0.0, time.time() - made_at))


class FeedCounter:
    """Counts what the feed has journalled since this process began."""

    def __init__(self, watch: FeedWatch, metrics: Metrics) -> None:
        self.watch = watch
        self.metrics = metrics
        self._lock = threading.Lock()
        """Two may ask at the same moment, and each step is counted once."""
        self._reorgs = ReorgMeter()
        self._sequence = watch.get_sequence()
        """Of the last step that was counted."""
        self._failures = watch.journal.count_failures()
        """That were counted, by reason."""

    def measure(self) -> None:
        for level in Finality:
            self.metrics.newest.labels(level).set(self.watch.get_newest(level).number)
        self.metrics.age.set(self.watch.get_age_s())
        self.metrics.feed_lag.set(self.watch.compute_lag())
        with self._lock:
            self._count_steps()
            self._count_failures()

    def _count_steps(self) -> None:
        while steps := self.watch.journal.read_steps(self._sequence, READ_MAX):
            for depth in self._reorgs.read(steps):
                self.metrics.reorg_depth.observe(depth)
            for step in steps:
                if step.step is not Step.FINAL:
                    self.metrics.blocks.labels(step.step, step.trust).inc()
            self._sequence = steps[-1].sequence

    def _count_failures(self) -> None:
        before, self._failures = self._failures, self.watch.journal.count_failures()
        for reason, count in self._failures.items():
            self.metrics.failures.labels(reason).inc(count - before.get(reason, 0))

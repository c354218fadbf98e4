"""Random histories of a durable subscription: reorgs, crashes, late acknowledgements; the machine without sockets."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

from proofcast.broker.io.deliveries import Deliveries
from proofcast.broker.io.hub import Hub
from proofcast.broker.io.store.durable import Store
from proofcast.broker.selection import Selection
from proofcast.broker.start import Oldest
from proofcast.broker.subscription import Pending, Terms
from proofcast.errors import Unavailable
from proofcast.event import Finality, Step
from proofcast.testing.broker.serving import TOPICS
from proofcast.testing.feed.story import LogName, Story

STEPS = 10
ALL = 1_000
RAW = Selection(contract=bytes(20))
"""The logs that a story has."""


def run_history(folder: Path, seed: int) -> None:
    """Raise where the subscriber does not end with the chain's own view, or is told something out of turn."""
    history = DurableHistory(folder, seed)
    held = asyncio.run(history.run())
    assert held == history.story.list_logs(history.level), f"seed {seed}"


class Subscriber:
    """Does what it is told, once: a repeated step that it knows it has done is passed over."""

    def __init__(self) -> None:
        self.held: list[LogName] = []
        self._done = 0
        """Ordinal of the last delivery performed."""

    def perform(self, pending: Sequence[Pending]) -> None:
        for one in pending:
            if one.ordinal <= self._done:
                assert one.is_repeated, "repeated and not marked"
                continue
            assert one.ordinal == self._done + 1, "a delivery is missing"
            self._done = one.ordinal
            if one.step is Step.APPLY:
                assert one.log not in self.held, "applied twice"
                self.held.append(one.log)
            else:
                assert self.held.pop() == one.log, "undone out of turn"


class DurableHistory:
    def __init__(self, folder: Path, seed: int) -> None:
        self.random, self.story = random.Random(seed), Story(folder, seed)
        self.level = list(Finality)[seed % len(Finality)]
        self._hub, self._store = Hub(folder, TOPICS), Store(":memory:")
        self._subscriber = Subscriber()

    async def run(self) -> list[LogName]:
        """What the subscriber holds in the end."""
        deliveries = Deliveries(self._hub, self._store)
        place = deliveries.find_place(Oldest(), self.level)
        await self._store.create("flights", Terms(RAW, self.level), place)
        for _ in range(STEPS):
            self._happen()
            if self.random.random() < 0.3:  # the broker dies, and comes back
                deliveries = Deliveries(self._hub, self._store)
            await self._deliver(deliveries, self.random.randint(1, 6))
        self._notice()
        while await self._deliver(deliveries, ALL):
            pass
        await self._store.close()
        self._hub.history.close()
        return self._subscriber.held

    def _happen(self) -> None:
        self.random.choice((self.story.grow, self.story.grow, self.story.settle))()
        if self.random.random() < 0.5:
            self._notice()

    def _notice(self) -> None:
        """What a hub does by itself, soon after."""
        for level in Finality:
            self._hub.advance(level)

    async def _deliver(self, deliveries: Deliveries, limit: int) -> int:
        """Some of what is pending arrives, some of that is acknowledged; how much was pending."""
        try:
            pending = await deliveries.read(await deliveries.hold("flights"), limit)
        except Unavailable:
            return 0  # what is held is not final yet
        arrived = pending if limit == ALL else pending[: self.random.randint(0, len(pending))]
        self._subscriber.perform(arrived)
        taken = arrived if limit == ALL else arrived[: self.random.randint(0, len(arrived))]
        if taken:
            await self._store.acknowledge_up_to("flights", taken[-1].cursor)
        return len(pending)

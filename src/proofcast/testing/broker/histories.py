"""Subscribers through random reorgs: whatever happens meanwhile, each ends with what the chain plainly holds."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from proofcast.broker.io.hub import Batch, Hub
from proofcast.broker.selection import Selection
from proofcast.broker.start import Oldest
from proofcast.cursor import parse_cursor
from proofcast.event import Finality
from proofcast.testing.broker.serving import TOPICS
from proofcast.testing.feed.story import LogName, Story
from proofcast.testing.feed.views import perform

ROUNDS = 8
READS_MAX = 1_000
"""Batches until a subscriber must hold what the chain holds."""


@dataclass(slots=True)
class Subscriber:
    """Does as it is told, notices what is wrong, and sometimes hangs up."""

    hub: Hub
    level: Finality
    held: list[LogName] = field(default_factory=list)
    cursor: str = ""
    _batches: AsyncIterator[Batch] | None = None

    async def catch_up(self, wanted: list[LogName]) -> None:
        for _ in range(READS_MAX):
            if self.held == wanted:
                return
            if self._batches is None:
                start = parse_cursor(self.cursor) if self.cursor else Oldest()
                self._batches = self.hub.subscribe(Selection(contract=bytes(20)), start, self.level)
            for entry in (await anext(self._batches)).entries:
                perform(self.held, entry.delivery.event)
                self.cursor = entry.delivery.cursor
        raise AssertionError(f"{len(self.held)} held, {len(wanted)} are there")

    def hang_up(self) -> None:
        self._batches = None


async def live_through(folder: Path, seed: int) -> None:
    """One random history in one process: subscribers of every finality, some always there, some now and then."""
    dice, story, hub = random.Random(seed), Story(folder, seed), Hub(folder, TOPICS)
    subscribers = [Subscriber(hub, level) for level in Finality for _ in range(2)]
    for _ in range(ROUNDS):
        story.grow()
        story.settle()
        for level in Finality:
            hub.advance(level)
        for subscriber in subscribers:
            if dice.random() < 0.2:
                subscriber.hang_up()
            if dice.random() < 0.6:
                await subscriber.catch_up(story.list_logs(subscriber.level))
    for subscriber in subscribers:
        await subscriber.catch_up(story.list_logs(subscriber.level))

"""Subscribers through random reorgs: whatever happens meanwhile, each ends with what the chain plainly holds."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from proofcast.broker.io.hub import Batch, Hub
from proofcast.broker.selection import Selection
from proofcast.broker.start import Oldest
from proofcast.cloudevents import parse_structured
from proofcast.cursor import parse_cursor
from proofcast.event import Finality
from proofcast.testing.broker.serving import TOPICS
from proofcast.testing.feed.story import LogName, Story
from proofcast.testing.feed.views import perform

ROUNDS = 8
CATCH_UP_S_MAX = 30.0
"""A subscriber that waits for something that never comes must not hang a test."""
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


@dataclass(slots=True)
class Connected:
    """Stays, and is written to while it waits; sometimes it cannot take more."""

    hub: Hub
    level: Finality
    dice: random.Random
    held: list[LogName] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        async for batch in self.hub.subscribe(Selection(contract=bytes(20)), Oldest(), self.level, self):
            for entry in batch.entries:
                perform(self.held, entry.delivery.event)
            self.changed.set()

    def write(self, frames: bytes, count: int) -> bool:
        found = [frame.partition(b"data: ")[2] for frame in frames.split(b"\n\n") if frame]
        assert len(found) == count
        for data in found:
            perform(self.held, parse_structured(data).event)
        self.changed.set()
        return self.dice.random() < 0.7

    async def catch_up(self, wanted: list[LogName]) -> None:
        async with asyncio.timeout(CATCH_UP_S_MAX):
            while self.held != wanted:
                self.changed.clear()
                await self.changed.wait()


async def live_through(folder: Path, seed: int) -> None:
    """One random history in one process: subscribers of every finality, some always there, some now and then."""
    dice, story, hub = random.Random(seed), Story(folder, seed), Hub(folder, TOPICS)
    subscribers = [Subscriber(hub, level) for level in Finality for _ in range(2)]
    connected = [Connected(hub, level, dice) for level in Finality]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one.run()) for one in connected]
        await live_on(story, hub, dice, subscribers)
        for one in connected:
            await one.catch_up(story.list_logs(one.level))
        for task in tasks:
            task.cancel()


async def live_on(story: Story, hub: Hub, dice: random.Random, subscribers: list[Subscriber]) -> None:
    for _ in range(ROUNDS):
        story.grow()
        story.settle()
        for level in Finality:
            hub.advance(level)
        await asyncio.sleep(0)
        for subscriber in subscribers:
            if dice.random() < 0.2:
                subscriber.hang_up()
            if dice.random() < 0.6:
                await subscriber.catch_up(story.list_logs(subscriber.level))
    for subscriber in subscribers:
        await subscriber.catch_up(story.list_logs(subscriber.level))

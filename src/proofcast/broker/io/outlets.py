"""Connections that are up to date and wait: what is new is written to them at once, joined once for all who want it.

So one event for a thousand connections is a thousand writes and no more. A connection that cannot take more, or was
silent for a heartbeat's time, leaves, and goes on by itself from the place that it is told.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from proofcast.broker.entry import Entry
from proofcast.broker.ring import Ring
from proofcast.broker.selection import Selection
from proofcast.feed.view import View

Place = tuple[int, View]
"""In the ring, and what a subscriber holds that is there."""
Select = Callable[[Sequence[Entry], Selection], Sequence[Entry]]


class Outlet(Protocol):
    def write(self, frames: bytes, count: int) -> bool:
        """Take so many deliveries; says whether more may follow at once."""


@dataclass(eq=False, slots=True)
class Waiting:
    outlet: Outlet
    left: asyncio.Future[Place]

    def leave(self, ring: Ring) -> None:
        if not self.left.done():
            self.left.set_result((ring.end, ring.view))


class Outlets:
    """Of one finality."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._waiting: defaultdict[Selection, set[Waiting]] = defaultdict(set)
        self._others: set[Selection] = set()
        """Those of them that name more, or less, than one topic by its id."""

    async def wait(self, selection: Selection, outlet: Outlet, silence_s: float) -> Place:
        """Have everything written that is behind the ring's end now; the place where that ends."""
        loop = asyncio.get_running_loop()
        waiting = Waiting(outlet, loop.create_future())
        self._waiting[selection].add(waiting)
        if selection != Selection(topic=selection.topic) or not selection.topic:
            self._others.add(selection)
        alarm = loop.call_later(silence_s, waiting.leave, self._ring)
        try:
            return await waiting.left
        finally:
            alarm.cancel()
            self._waiting[selection].discard(waiting)
            if not self._waiting[selection]:
                del self._waiting[selection]
                self._others.discard(selection)

    def write(self, entries: Sequence[Entry], select: Select) -> None:
        """New entries, which the ring has already."""
        for selection in list(self._find(entries)):
            chosen = select(entries, selection)
            frames = b"".join([entry.frame for entry in chosen])
            for waiting in self._waiting[selection] if chosen else ():
                if not waiting.left.done() and not waiting.outlet.write(frames, len(chosen)):
                    waiting.leave(self._ring)

    def _find(self, entries: Sequence[Entry]) -> Iterator[Selection]:
        """Selections that may want some of them: those of a topic by the topic, so that a hundred thousand may wait."""
        by_topic = (Selection(topic=topic) for topic in {entry.topic for entry in entries} if topic)
        yield from (selection for selection in by_topic if selection in self._waiting)
        yield from self._others

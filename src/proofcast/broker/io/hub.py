"""One reader of the feed for everybody: new deliveries are read, decoded and encoded once, then wake who wants them.

A subscriber pulls. One that is up to date takes entries from the ring; one that is behind reads history until its view
is in the ring again. So there is no queue per subscriber, a slow one delays nobody, and the change from history to live
is the same entry seen from two sides: without gap, without repeat.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proofcast.broker.catalogue import Catalogue
from proofcast.broker.entry import Entry
from proofcast.broker.io.beginnings import Beginnings
from proofcast.broker.io.entries import EntryMaker
from proofcast.broker.io.outlets import Outlet, Outlets
from proofcast.broker.ring import Ring
from proofcast.broker.selection import Selection
from proofcast.broker.start import Newest, Start
from proofcast.chain.segment import BlockId
from proofcast.cursor import Cursor, encode_cursor
from proofcast.errors import Unavailable
from proofcast.event import Finality
from proofcast.feed.io.history import History
from proofcast.feed.view import WHOLE_BLOCK, View, Way
from proofcast.onchain.io.artefacts import get_exchanges

POLL_S = 0.004
"""Between looks at whether the feed has changed; a look costs microseconds."""
HEARTBEAT_S = 15.0
"""Silence after which the newest verified block is told: shorter than the minute after which proxies hang up."""
HISTORY_MAX = 256
"""Logs read from disk at a time, in about two milliseconds: longer, and others would wait for one who is behind.

A thread would not help: Python reads and writes one thing at a time, and hands over later than this takes."""
BATCH_MAX = 256
"""Entries handed on at a time."""

EVERYTHING = Selection()
Wanted = bytes | None
"""The topic that a sleeper waits for, or None for anything."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Deliveries in order, as entries or as frames; without any it is a heartbeat."""

    entries: Sequence[Entry]
    newest: BlockId
    """The newest verified block at the subscriber's finality: up to it nothing is left out."""
    rewound_to: Cursor | None = None
    """Set where the cursor names a block never seen here: whatever is held above this one must be dropped."""
    view: View | None = None
    """Where the subscriber is, if more came to it than the entries."""
    frames: Sequence[bytes] = ()
    """Deliveries of the past, instead of entries, for one who wants nothing but bytes."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of the way from somebody's view to the present, with everything on it."""

    entries: Sequence[Entry]
    view: View
    """Where it ends."""
    newest: BlockId
    finalized: BlockId
    is_complete: bool


class Hub:
    def __init__(self, folder: Path, topics_address: bytes) -> None:
        self.history = History(folder)
        self.catalogue = Catalogue(topics_address, get_exchanges(topics_address))
        self.entries = EntryMaker(self.history, self.catalogue)
        self._beginnings = Beginnings(self.history, self.catalogue)
        self._wanted: set[Finality] = set()
        """Levels that somebody has asked for; what nobody reads is not made."""
        self._rings: dict[Finality, Ring] = {}
        self._outlets: dict[Finality, Outlets] = {}
        self._targets: dict[Finality, BlockId] = {}
        self._sleepers: dict[Finality, dict[Wanted, set[asyncio.Future[int | None]]]] = {
            level: defaultdict(set) for level in Finality
        }

    # --- the feed

    async def run(self) -> None:
        """Follow the feed until cancelled."""
        seen: int | None = None
        while True:
            try:
                version = self.history.get_version()
                if version != seen or self._wanted - self._rings.keys():
                    self.entries.learn_names()
                    is_behind = [self.advance(level) for level in self._wanted]
                    for level in set(Finality) - self._wanted:
                        self._targets[level] = self.history.get_newest(level).block
                    seen = None if any(is_behind) else version
            except Unavailable:
                pass  # nothing is journalled yet, or the disk is full: the next look may find it otherwise
            await asyncio.sleep(POLL_S)

    def advance(self, level: Finality) -> bool:
        """Bring one ring forward; says whether there is more to read than one way can hold."""
        if level not in self._rings:
            self._rings[level] = Ring(self.history.get_newest(level))
            self._outlets[level] = Outlets(self._rings[level])
        ring = self._rings[level]
        way = self.history.find_way(ring.view, level)
        self._targets[level] = way.target
        if way.view != ring.view:
            entries = self.entries.build(way, level)
            first = ring.end
            ring.append(entries, way.view)
            self._wake(level, entries, first)
        return not way.is_complete

    # --- subscribers

    def subscribe(
        self, selection: Selection, start: Start, level: Finality, outlet: Outlet | None = None
    ) -> AsyncIterator[Batch]:
        """A heartbeat, history, then live, with heartbeats when nothing happens. Ends only when the caller does.

        Where an outlet is given, what happens while the caller waits for the next batch is written to that.
        """
        view = self.find_view(start, level, selection)
        if isinstance(start, Cursor) and not self.history.knows(view.block):
            agreed = self.history.get_known(BlockId(start.finalized_number, start.finalized_hash))
            rewound = replace(start, block_number=agreed.number, block_hash=agreed.hash, log_index=WHOLE_BLOCK)
            return self._stream(selection, View(agreed, WHOLE_BLOCK), level, outlet, replace(rewound, is_held=True))
        return self._stream(selection, view, level, outlet)

    async def _stream(
        self,
        selection: Selection,
        view: View,
        level: Finality,
        outlet: Outlet | None,
        rewound_to: Cursor | None = None,
    ) -> AsyncIterator[Batch]:
        yield Batch((), self.history.get_newest(level).block, rewound_to)
        while True:
            _, place = self._find_place(view, level)
            if place is not None:
                async for batch in self._read_ring(selection, level, place, outlet):
                    view = batch.entries[-1].view if batch.entries else batch.view or view
                    yield batch
                continue
            way = self.history.find_way(view, level, HISTORY_MAX)
            if outlet and selection.is_by_topic:
                batch = Batch((), way.target, frames=self.entries.build_frames(way, level, selection.topic))
            else:
                batch = Batch(self.entries.select(self.entries.build(way, level), selection), way.target)
            if batch.entries or batch.frames:
                yield batch
            elif way.view == view:
                await asyncio.sleep(POLL_S)  # ahead of the ring, by less than one poll
            view = way.view
            await asyncio.sleep(0)

    async def read_on(self, view: View, level: Finality, limit: int = BATCH_MAX) -> Passage:
        """Everything that comes after a view, wanted or not: from the ring where it is there, else from history."""
        ring, place = self._find_place(view, level)
        if ring and place is not None and Finality.FINALIZED in self._targets:
            entries = ring.read(place, limit)
            is_complete = place + len(entries) == ring.end
            reached = ring.view if is_complete else entries[-1].view
            return Passage(entries, reached, self._targets[level], self._targets[Finality.FINALIZED], is_complete)
        way = await asyncio.to_thread(self.history.find_way, view, level, limit)
        return Passage(self.entries.build(way, level), way.view, way.target, way.finalized, way.is_complete)

    async def wait_beyond(self, view: View, selection: Selection, level: Finality) -> None:
        """Until something came behind a view that may be wanted, or for a heartbeat's time."""
        ring, place = self._find_place(view, level)
        if ring is None or place is None:
            await asyncio.sleep(POLL_S)  # it reads history, or is ahead of the ring by less than one poll
        elif place == ring.end:
            await self._sleep(selection, level)

    def _find_place(self, view: View, level: Finality) -> tuple[Ring | None, int | None]:
        """The ring of a level, which is there soon after somebody first asks for it, and where in it a view is."""
        self._wanted.add(level)
        ring = self._rings.get(level)
        return ring, ring.find_place(view) if ring else None

    async def _read_ring(
        self, selection: Selection, level: Finality, place: int, outlet: Outlet | None
    ) -> AsyncIterator[Batch]:
        """From a place in the ring on; ends when the ring has overtaken a reader that was too slow.

        The first heartbeat comes at once: it says that history has ended.
        """
        ring, is_told = self._rings[level], False
        while place >= ring.first:
            found = ring.read(place, BATCH_MAX)
            place += len(found)
            entries = self.entries.select(found, selection)
            if entries:
                yield Batch(entries, self._targets[level])
            elif not found and not is_told:
                is_told = True
                yield Batch((), self._targets[level])
            elif not found and outlet:
                place, view = await self._outlets[level].wait(selection, outlet, HEARTBEAT_S)
                yield Batch((), self._targets[level], view=view)
            elif not found:
                woken = await self._sleep(selection, level)
                place = ring.end if woken is None else woken
                if woken is None:
                    yield Batch((), self._targets[level])

    async def _sleep(self, selection: Selection, level: Finality) -> int | None:
        """Wait for something that may be wanted; its place, or None after a heartbeat's time."""
        wanted, loop = selection.awaited, asyncio.get_running_loop()
        sleeper: asyncio.Future[int | None] = loop.create_future()
        self._sleepers[level][wanted].add(sleeper)
        alarm = loop.call_later(HEARTBEAT_S, rouse, sleeper, None)
        try:
            return await sleeper
        finally:
            alarm.cancel()
            self._sleepers[level][wanted].discard(sleeper)
            if not self._sleepers[level][wanted]:
                del self._sleepers[level][wanted]

    def _wake(self, level: Finality, entries: Sequence[Entry], first: int) -> None:
        """Everybody whose topic is among the entries, at its first one: what stands before is of no concern to it."""
        sleepers = self._sleepers[level]
        places: dict[Wanted, int] = {None: first}
        for place, entry in enumerate(entries, start=first):
            places.setdefault(entry.topic, place)
        for wanted, place in places.items() if entries else ():
            for sleeper in sleepers.get(wanted, ()):
                rouse(sleeper, place)
        self._outlets[level].write(entries, self.entries.select)

    def find_view(self, start: Start, level: Finality, selection: Selection = EVERYTHING) -> View:
        """What somebody holds that wants to start there."""
        if isinstance(start, Newest) and level in self._rings:
            return self._rings[level].view
        return self._beginnings.find(start, level, selection)

    def build_page_cursor(self, way: Way) -> str:
        """What somebody holds that went this way to its end, whether or not anything on it was wanted."""
        block, log_index = way.view.block, way.view.log_index
        is_held = log_index >= 0
        place = (block.number, block.hash, log_index if is_held else 0, is_held)
        return encode_cursor(Cursor(self.history.get_chain_id(), *place, way.finalized.number, way.finalized.hash))


def rouse(sleeper: asyncio.Future[int | None], place: int | None) -> None:
    if not sleeper.done():
        sleeper.set_result(place)

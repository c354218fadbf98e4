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

from proofcast.broker.catalogue import Catalogue, build_event
from proofcast.broker.ring import Entry, Ring, encode_frame
from proofcast.broker.selection import Selection
from proofcast.broker.start import AtBlock, AtTime, Newest, Oldest, Start
from proofcast.chain.segment import BlockId
from proofcast.cloudevents import Delivery
from proofcast.cursor import Cursor, encode_cursor
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.event import Event, Finality, Step
from proofcast.feed.io.history import History
from proofcast.feed.view import WHOLE_BLOCK, Move, View, Way

POLL_S = 0.01
"""Between looks at the feed; a look costs microseconds."""
HEARTBEAT_S = 15.0
"""Silence after which the newest verified block is told: shorter than the minute after which proxies hang up."""
BATCH_MAX = 256
"""Entries handed on at a time."""

Wanted = bytes | None
"""The topic that a sleeper waits for, or None for anything."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Deliveries in order; without any it is a heartbeat."""

    entries: Sequence[Entry]
    newest: BlockId
    """The newest verified block at the subscriber's finality: up to it nothing is left out."""
    rewound_to: Cursor | None = None
    """Set where the cursor names a block never seen here: whatever is held above this one must be dropped."""


class Hub:
    def __init__(self, folder: Path, topics_address: bytes) -> None:
        self.history = History(folder)
        self.catalogue = Catalogue(topics_address)
        self._rings: dict[Finality, Ring] = {}
        self._targets: dict[Finality, BlockId] = {}
        self._sleepers: dict[Finality, dict[Wanted, set[asyncio.Future[int]]]] = {
            level: defaultdict(set) for level in Finality
        }

    # --- the feed

    async def run(self) -> None:
        """Follow the feed until cancelled."""
        is_learnt = False
        while True:
            try:
                if not is_learnt:
                    self.learn_names()
                    is_learnt = True
                for level in Finality:
                    self.advance(level)
            except Unavailable:
                pass  # nothing is journalled yet, or the disk is full: the next look may find it otherwise
            await asyncio.sleep(POLL_S)

    def learn_names(self) -> None:
        """Read what was created before we came."""
        view, is_complete = self.history.get_oldest(), False
        while not is_complete:
            way = self.history.find_way(view, Finality.LATEST)
            for move in way.moves:
                self.catalogue.read(move.row.log)
            view, is_complete = way.view, way.is_complete

    def advance(self, level: Finality) -> None:
        """Bring one ring up to date."""
        if level not in self._rings:
            self._rings[level] = Ring(self.history.get_newest(level))
        ring = self._rings[level]
        way = self.history.find_way(ring.view, level)
        self._targets[level] = way.target
        if way.view == ring.view:
            return
        entries = self.build_entries(way, level)
        first = ring.end
        ring.append(entries, way.view)
        self._wake(level, entries, first)

    def build_entries(self, way: Way, level: Finality) -> list[Entry]:
        found = (self._build_entry(move, way.finalized, level) for move in way.moves)
        return [entry for entry in found if entry is not None]

    def _build_entry(self, move: Move, finalized: BlockId, level: Finality) -> Entry | None:
        row = move.row
        event = build_event(self.catalogue, row.log, row.position, row.timestamp, row.trust, level, move.step)
        if event is None:
            return None
        delivery = Delivery(event, encode_cursor(build_cursor(event, finalized)), move.turn)
        return Entry(delivery, encode_frame(delivery), move.view)

    # --- subscribers

    def subscribe(self, selection: Selection, start: Start, level: Finality) -> AsyncIterator[Batch]:
        """A heartbeat, history, then live, with heartbeats when nothing happens. Ends only when the caller does."""
        view = self.find_view(start, level)
        if isinstance(start, Cursor) and not self.history.knows(view.block):
            agreed = self.history.get_known(BlockId(start.finalized_number, start.finalized_hash))
            rewound = replace(start, block_number=agreed.number, block_hash=agreed.hash, log_index=WHOLE_BLOCK)
            return self._stream(selection, View(agreed, WHOLE_BLOCK), level, replace(rewound, is_held=True))
        return self._stream(selection, view, level)

    async def _stream(
        self, selection: Selection, view: View, level: Finality, rewound_to: Cursor | None = None
    ) -> AsyncIterator[Batch]:
        yield Batch((), self.history.get_newest(level).block, rewound_to)
        while True:
            place = self._rings[level].find_place(view) if level in self._rings else None
            if place is not None:
                async for batch in self._read_ring(selection, level, place):
                    view = batch.entries[-1].view if batch.entries else view
                    yield batch
                continue
            way = await asyncio.to_thread(self.history.find_way, view, level)
            entries = self._select(self.build_entries(way, level), selection)
            if entries:
                yield Batch(entries, way.target)
            elif way.view == view:
                await asyncio.sleep(POLL_S)  # ahead of the ring, by less than one poll
            view = way.view

    async def _read_ring(self, selection: Selection, level: Finality, place: int) -> AsyncIterator[Batch]:
        """From a place in the ring on; ends when the ring has overtaken a reader that was too slow.

        The first heartbeat comes at once: it says that history has ended.
        """
        ring, is_told = self._rings[level], False
        while place >= ring.first:
            found = ring.read(place, BATCH_MAX)
            place += len(found)
            entries = self._select(found, selection)
            if entries:
                yield Batch(entries, self._targets[level])
            elif not found and not is_told:
                is_told = True
                yield Batch((), self._targets[level])
            elif not found:
                woken = await self._sleep(selection, level)
                place = ring.end if woken is None else woken
                if woken is None:
                    yield Batch((), self._targets[level])

    def _select(self, entries: Sequence[Entry], selection: Selection) -> list[Entry]:
        names = self.catalogue.names
        return [entry for entry in entries if selection.matches(entry.delivery.event, names)]

    async def _sleep(self, selection: Selection, level: Finality) -> int | None:
        """Wait for something that may be wanted; its place, or None after a heartbeat's time."""
        wanted = selection.topic or None
        sleeper: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._sleepers[level][wanted].add(sleeper)
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                return await sleeper
        except TimeoutError:
            return None
        finally:
            self._sleepers[level][wanted].discard(sleeper)
            if not self._sleepers[level][wanted]:
                del self._sleepers[level][wanted]

    def _wake(self, level: Finality, entries: Sequence[Entry], first: int) -> None:
        """Everybody whose topic is among the entries, at its first one: what stands before is of no concern to it."""
        sleepers = self._sleepers[level]
        places: dict[Wanted, int] = {None: first}
        for place, entry in enumerate(entries, start=first):
            places.setdefault(entry.delivery.event.topic, place)
        for wanted, place in places.items() if entries else ():
            for sleeper in sleepers.get(wanted, ()):
                if not sleeper.done():
                    sleeper.set_result(place)

    # --- where to begin

    def find_view(self, start: Start, level: Finality) -> View:
        """What somebody holds that wants to start there."""
        if isinstance(start, Oldest):
            return self.history.get_oldest()
        if isinstance(start, Newest):
            return self._rings[level].view if level in self._rings else self.history.get_newest(level)
        if isinstance(start, Cursor):
            return find_cursor_view(start, self.history.get_chain_id())
        if isinstance(start, AtBlock):
            return self._find_before(start.number)
        if isinstance(start, AtTime):
            return self.history.find_before_time(start.timestamp)
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`sequence:{start.sequence}` needs one topic to count in",
            hint="select a topic by its id, or start at a block, a time or a cursor",
        )

    def build_page_cursor(self, way: Way) -> str:
        """What somebody holds that went this way to its end, whether or not anything on it was wanted."""
        block, log_index = way.view.block, way.view.log_index
        is_held = log_index >= 0
        place = (block.number, block.hash, log_index if is_held else 0, is_held)
        return encode_cursor(Cursor(self.history.get_chain_id(), *place, way.finalized.number, way.finalized.hash))

    def _find_before(self, number: int) -> View:
        block = self.history.find_block(number - 1)
        if block is None:
            return self.history.get_oldest()
        return View(block, WHOLE_BLOCK)


def find_cursor_view(cursor: Cursor, chain_id: int) -> View:
    if cursor.chain_id != chain_id:
        raise InvalidRequest(
            Reason.WRONG_NETWORK,
            f"the cursor is of chain `{cursor.chain_id}`, this broker follows `{chain_id}`",
            hint="ask a broker of that chain",
        )
    log_index = cursor.log_index if cursor.is_held else cursor.log_index - 1
    return View(BlockId(cursor.block_number, cursor.block_hash), log_index)


def build_cursor(event: Event, finalized: BlockId) -> Cursor:
    at = event.position
    held = event.step is not Step.UNDO
    return Cursor(at.chain_id, at.block_number, at.block_hash, at.log_index, held, finalized.number, finalized.hash)

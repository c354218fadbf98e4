"""What a subscription gets next: first what it was offered and did not acknowledge, then what follows on the chain."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from proofcast.broker.entry import Entry
from proofcast.broker.io.beginnings import find_cursor_view
from proofcast.broker.io.hub import BATCH_MAX, EVERYTHING, Hub
from proofcast.broker.io.store.durable import Store
from proofcast.broker.io.store.offers import Given, Offered
from proofcast.broker.io.store.subscriptions import Holding, refuse_fenced
from proofcast.broker.selection import Selection
from proofcast.broker.start import Start
from proofcast.broker.subscription import (
    Pending,
    Subscription,
    get_event_order_key,
    get_log_name,
    get_order_key,
    select_entries,
)
from proofcast.chain.segment import BlockId
from proofcast.cloudevents import Delivery, compute_id, encode_structured, format_id, parse_structured
from proofcast.cursor import Cursor, encode_cursor, parse_cursor
from proofcast.event import Finality, Step
from proofcast.feed.io.history import UnknownBlock, refuse_unknown
from proofcast.feed.view import WHOLE_BLOCK, View

UNWANTED_BLOCKS_MAX = 64
"""Blocks without anything wanted after which the place is written down nevertheless."""
LOOKS_PER_LEASE = 3
"""So that a lease survives two looks that fail."""
NOTHING_SETTLED = -1
PASSAGES_MAX = 64
"""Parts of the way looked through for one read: then whoever asked is answered, and may ask again."""


@dataclass(slots=True)
class Progress:
    """How far a holding has looked, which may be further than what is written down."""

    fence: int
    chain_id: int
    view: View
    place: str
    """Written down."""
    written: int
    """Its block."""
    held_until: float
    """By this machine's clock, and earlier than the database thinks: the lease was asked for before it was given."""

    @classmethod
    def begin(cls, holding: Holding, view: View, held_until: float) -> "Progress":
        place = holding.subscription.place
        return cls(holding.fence, parse_cursor(place).chain_id, view, place, view.block.number, held_until)


class Deliveries:
    def __init__(self, hub: Hub, store: Store) -> None:
        self.hub, self.store = hub, store
        self._progress: dict[str, Progress] = {}
        """Of what this broker holds, by name."""

    def find_place(self, start: Start, level: Finality, selection: Selection = EVERYTHING) -> str:
        """The cursor of a new subscription that begins there."""
        if isinstance(start, Cursor):
            find_cursor_view(start, self.hub.history.get_chain_id())
            self.hub.history.get_known(BlockId(start.block_number, start.block_hash))
            return encode_cursor(start)
        finalized = self.hub.history.get_newest(Finality.FINALIZED).block
        view = self.hub.find_view(start, level, selection)
        return encode_place(view, self.hub.history.get_chain_id(), finalized)

    async def rewind(self, name: str, start: Start) -> Subscription:
        """Deliver again from there; the subscriber drops what it holds beyond."""
        found = await self.store.get(name)
        place = self.find_place(start, found.terms.finality, found.terms.selection)
        view = self._get_view(place)
        former = self._get_view(found.place)
        return await self.store.rewind(
            name, place, view.block.number, view.log_index, (former.block.number, former.log_index)
        )

    async def hold(self, name: str) -> Holding:
        """The right to deliver; whoever had it within this broker is fenced off."""
        held_until = time.monotonic() + self.store.lease_s
        holding = await self.store.hold(name)
        self._progress[name] = Progress.begin(holding, self._get_view(holding.subscription.place), held_until)
        return holding

    async def renew(self, holdings: Sequence[Holding]) -> dict[str, int]:
        """Keep them for another while; the generation of each that still is ours."""
        held_until = time.monotonic() + self.store.lease_s
        kept = await self.store.renew(holdings)
        for holding in holdings:
            if holding.name in kept and holding.name in self._progress:
                self._progress[holding.name].held_until = held_until
        return kept

    async def is_kept(self, holding: Holding) -> bool:
        """Is it still ours, and as it was? Asks the store, and renews, once in a third of the lease."""
        rest_s = self._get_progress(holding).held_until - time.monotonic()
        if rest_s > self.store.lease_s * (1 - 1 / LOOKS_PER_LEASE):
            return True
        return (await self.renew([holding])).get(holding.name) == holding.subscription.generation

    def verify_held(self, holding: Holding) -> None:
        """Raise where another broker may deliver by now, because the lease could not be renewed in time."""
        if time.monotonic() > self._get_progress(holding).held_until:
            raise refuse_fenced(holding)

    async def release(self, holding: Holding) -> None:
        progress = self._progress.get(holding.name)
        if progress is not None and progress.fence == holding.fence:
            del self._progress[holding.name]
        await self.store.release(holding)

    async def read(self, holding: Holding, limit: int, after: int = -1) -> list[Pending]:
        """Pending deliveries behind an ordinal; where there are none, the next ones on the chain, written down."""
        pending = await self.store.read_pending(holding.name, after, limit)
        return pending or await self.extend(holding, limit)

    async def extend(self, holding: Holding, limit: int) -> list[Pending]:
        """Offer what follows on the chain: nothing, where nothing wanted came. Durable when it returns."""
        progress = self._get_progress(holding)
        for _ in range(PASSAGES_MAX):
            level = holding.subscription.terms.finality
            try:
                passage = await self.hub.read_on(progress.view, level, min(limit, BATCH_MAX))
            except UnknownBlock:
                return await self._leave_orphan(holding, progress)
            entries = await self._choose(holding, passage.entries)
            pending: list[Pending] = []
            if entries or passage.view.block.number - progress.written >= UNWANTED_BLOCKS_MAX:
                reached = encode_place(passage.view, progress.chain_id, passage.finalized)
                offered = build_offers(entries, holding.subscription, progress.place)
                # One who is behind may still hold an orphan of a height that is final by now.
                settled = passage.finalized.number if passage.is_complete else NOTHING_SETTLED
                pending = await self.store.offer(holding, offered, reached, settled)
                progress.place, progress.written = reached, passage.view.block.number
            progress.view = passage.view
            if pending or passage.is_complete:
                return pending
        return []

    async def _leave_orphan(self, holding: Holding, progress: Progress) -> list[Pending]:
        """Go back from a branch that another broker saw and this one did not, by what the store has of it.

        That it is no branch of ours is certain only when its height is final here; until then it may still come.
        """
        history, cursor = self.hub.history, parse_cursor(progress.place)
        agreed = history.get_known(BlockId(cursor.finalized_number, cursor.finalized_hash))
        finalized = history.get_newest(Finality.FINALIZED).block
        if progress.view.block.number > finalized.number:
            raise refuse_unknown(progress.view.block)
        given = await self.store.read_given(holding.name)
        orphans = list(takewhile(lambda one: history.find_block(one.block_number) != get_block(one), given))
        kept = given[len(orphans) : len(orphans) + 1]
        view = View(get_block(kept[0]), kept[0].log[1]) if kept else View(agreed, WHOLE_BLOCK)
        reached = encode_place(view, progress.chain_id, finalized)
        offered = build_undos(orphans, holding.subscription, progress.place, finalized)
        pending = await self.store.offer(holding, offered, reached, NOTHING_SETTLED)
        progress.view, progress.place, progress.written = view, reached, view.block.number
        return pending

    async def wait(self, holding: Holding) -> None:
        """Until there may be more to deliver."""
        subscription = holding.subscription
        # A changed selection does not say which topics an undo may come from, so anything wakes it.
        wanted = subscription.terms.selection if subscription.generation == 1 else Selection()
        await self.hub.wait_beyond(self._get_progress(holding).view, wanted, subscription.terms.finality)

    def compute_lag(self, subscription: Subscription) -> int:
        """Blocks between the newest verified one and the last one looked at for the subscription."""
        progress = self._progress.get(subscription.name)
        view = progress.view if progress else self._get_view(subscription.place)
        return max(0, self.hub.history.get_newest(subscription.terms.finality).block.number - view.block.number)

    def _get_progress(self, holding: Holding) -> "Progress":
        progress = self._progress.get(holding.name)
        if progress is None or progress.fence != holding.fence:
            raise refuse_fenced(holding)
        return progress

    async def _choose(self, holding: Holding, entries: Sequence[Entry]) -> list[Entry]:
        undone = [get_log_name(one) for one in entries if one.move.step is Step.UNDO]
        given = await self.store.find_given(holding.name, undone)
        return select_entries(entries, holding.subscription.terms.selection, self.hub.catalogue, given)

    def _get_view(self, place: str) -> View:
        return find_cursor_view(parse_cursor(place), self.hub.history.get_chain_id())


def build_offers(entries: Sequence[Entry], subscription: Subscription, place: str) -> list[Offered]:
    """Each with the cursor before it, so that the acknowledged cursor is that of the first pending one."""
    offers = []
    for entry in entries:
        move, cursor = entry.move, entry.cursor
        block_hash, log_index = get_log_name(entry)
        number = move.record.number
        offers.append(
            Offered(
                event_id=format_id(move.chain_id, number, log_index, block_hash, move.step, move.turn),
                order_key=get_order_key(entry, subscription.terms.ordering),
                before=place,
                cursor=cursor,
                body=entry.json,
                log=(block_hash, log_index),
                block_number=number,
                step=move.step,
                is_repeated=(number, log_index) <= subscription.repeats_until and move.step is Step.APPLY,
                is_final=number <= entry.finalized.number,
            )
        )
        place = cursor
    return offers


def build_undos(given: Sequence[Given], subscription: Subscription, place: str, finalized: BlockId) -> list[Offered]:
    """Of events whose blocks are not in this broker's feed."""
    offers = []
    for one in given:
        applied = parse_structured(one.body)
        event = replace(applied.event, step=Step.UNDO)
        at = event.position
        place_before = Cursor(at.chain_id, at.block_number, at.block_hash, at.log_index, False, *finalized)
        cursor = encode_cursor(place_before)
        undo = Delivery(event, cursor, applied.turn)
        key = get_event_order_key(event, subscription.terms.ordering)
        event_id, body = compute_id(event, applied.turn), encode_structured(undo)
        offers.append(Offered(event_id, key, place, cursor, body, one.log, one.block_number, Step.UNDO, False))
        place = cursor
    return offers


def get_block(given: Given) -> BlockId:
    return BlockId(given.block_number, given.log[0])


def encode_place(view: View, chain_id: int, finalized: BlockId) -> str:
    is_held = view.log_index >= 0
    index = view.log_index if is_held else 0
    return encode_cursor(
        Cursor(chain_id, view.block.number, view.block.hash, index, is_held, finalized.number, finalized.hash)
    )

"""What a subscriber holds, kept apart from whoever serves it.

A broker sends deliveries in the chain's order: `apply`, and `undo` newest first. When it never saw the block that our
cursor names, it rewinds: it says up to which block we agree and sends everything above once more. Then what we hold
above that block is compared with what comes, one by one. The same is passed over. At the first difference, or when the
broker has nothing more, the rest of what we hold is undone, newest first. So a reader sees neither gap nor repeat,
whichever broker answers.

Held are deliveries above the finalized block only: what is final is never undone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from proofcast.cloudevents import Delivery
from proofcast.cursor import parse_cursor
from proofcast.errors import InvalidInput, Reason
from proofcast.event import Position, Step

HELD_MAX = 100_000
"""Deliveries above the finalized block; more means that finality has stopped or that the broker invents events."""


@dataclass(slots=True)
class Following:
    cursor: str = ""
    """What the reader holds; empty before the first delivery."""
    resumption: str = ""
    """What the next connection starts from: the cursor, or after a rewind as far as a broker has confirmed it."""
    is_resumed: bool = False
    """Does the reader hold more than came here? Then what is undone beyond that is its own; else it began later."""
    _held: list[Delivery] = field(default_factory=list)
    _doubtful: list[Delivery] = field(default_factory=list)
    """Held above the block that a broker rewound to, and not yet seen again; oldest first."""

    def receive(self, delivery: Delivery) -> Iterator[Delivery]:
        """What the reader must do because of this delivery."""
        if delivery.event.step is Step.UNDO:
            yield from self._undo(delivery)
        elif self._doubtful and is_same(self._doubtful[0], delivery):
            self._hold(self._doubtful.pop(0), delivery.cursor)
        else:
            yield from self.settle_doubts()
            self._hold(delivery, delivery.cursor)
            yield delivery

    def rewind(self, block_number: int, cursor: str) -> None:
        """The broker sends everything above this block again; the cursor is behind it."""
        self.resumption = cursor
        self._doubtful = [one for one in self._held if get_number(one) > block_number] + self._doubtful
        self._held = [one for one in self._held if get_number(one) <= block_number]

    def settle_doubts(self) -> Iterator[Delivery]:
        """The broker has nothing more, or something else: undo what it did not repeat."""
        while self._doubtful:
            undone = self._doubtful.pop()
            self.cursor = self.resumption
            yield replace(undone, event=replace(undone.event, step=Step.UNDO), cursor=self.cursor)

    def _undo(self, delivery: Delivery) -> Iterator[Delivery]:
        yield from self.settle_doubts()
        if self._held and not is_same(self._held[-1], delivery):
            raise InvalidInput(
                Reason.DISAGREES,
                f"the broker undoes `{name(delivery.event.position)}`, held last is"
                f" `{name(self._held[-1].event.position)}`",
                hint="it breaks the order it promised: use another broker",
            )
        self.cursor = self.resumption = delivery.cursor
        if self._held:
            event = replace(self._held.pop().event, step=Step.UNDO)
            yield replace(delivery, event=event)
        elif self.is_resumed:
            yield delivery

    def _hold(self, delivery: Delivery, cursor: str) -> None:
        finalized = parse_cursor(cursor).finalized_number
        if self._held and get_number(self._held[0]) <= finalized:
            self._held = [one for one in self._held if get_number(one) > finalized]
        if len(self._held) >= HELD_MAX:
            raise InvalidInput(
                Reason.DISAGREES,
                f"more than `{HELD_MAX}` events came above the finalized block `{finalized}`",
                hint="subscribe with the finality `finalized`, or look at the chain",
            )
        self._held.append(delivery)
        self.resumption = cursor
        if not self._doubtful:
            self.cursor = cursor


def is_same(one: Delivery, other: Delivery) -> bool:
    return one.event.position == other.event.position


def get_number(delivery: Delivery) -> int:
    return delivery.event.position.block_number


def name(at: Position) -> str:
    return f"log {at.log_index} of block {at.block_number} (0x{at.block_hash[:6].hex()}..)"

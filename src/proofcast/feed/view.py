"""What somebody holds of a chain, and the way from there to what the chain is now.

A view is a block and how far into it: everything up to that place was applied, nothing beyond; how it came about does
not matter. The way to a newer state follows from the parent links alone: undo from the view's block back to the first
block that is canonical, newest log first; then apply forward to the target. So whoever was away sees nothing of the
branches that came and went meanwhile, and two brokers that share nothing lead from one view to the same end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proofcast.chain.segment import BlockId
from proofcast.event import Step
from proofcast.feed.outbox import OutboxRow, Row, parse_row

WHOLE_BLOCK = 0xFFFFFFFF
"""As log index: behind every log of the block."""
NO_LOG = -1
"""As log index: before every log of the block."""


class View(NamedTuple):
    block: BlockId
    log_index: int
    """The last log held, of this block."""


class Move(NamedTuple):
    """One log applied or undone on the way, and the view that results."""

    step: Step
    record: Row
    """The log as it is stored: who is far behind reads many, and not every field of each."""
    chain_id: int
    turn: int
    """How often this block has been applied by now; 1 unless the chain undid it and took it back."""
    view: View

    @property
    def row(self) -> OutboxRow:
        return parse_row(self.record, self.chain_id)


class Run(NamedTuple):
    """Logs of one block that are applied, or undone, one after the other."""

    step: Step
    block: BlockId
    turn: int
    chain_id: int
    records: Sequence[Row]

    @property
    def moves(self) -> list[Move]:
        step, block, turn, chain_id, records = self
        held = 0 if step is Step.APPLY else -1
        return [Move(step, record, chain_id, turn, View(block, record.log_index + held)) for record in records]


@dataclass(frozen=True, slots=True)
class Way:
    runs: tuple[Run, ...]
    view: View
    """Where the way ends; beyond the last move where nothing was wanted further on."""
    is_complete: bool
    """Does it end at the target, or only at the limit?"""
    target: BlockId
    finalized: BlockId

    @property
    def moves(self) -> list[Move]:
        return [move for run in self.runs for move in run.moves]

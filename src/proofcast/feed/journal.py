"""What a journal says: the steps of a chain in their order, each with its block for as long as that may still change.

There is one writer. Whoever opens the journal for writing takes over: the one before is fenced off and its next append
refused, so that a process thought dead cannot write between the lines of its successor. Readers are as many as like,
each with a name and a position; the bytes of a block are kept until it is final and every reader has passed it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from proofcast.chain.segment import BlockId
from proofcast.chain.steps import BlockLink, ChainStep
from proofcast.errors import InvalidRequest, Reason
from proofcast.ethereum.block import RawBlock
from proofcast.event import Finality, Step


@dataclass(frozen=True, slots=True)
class JournalEntry:
    step: ChainStep
    block: RawBlock | None
    """Header and receipts of what is applied or undone, verified; None of a `final` step, and after trimming."""


@dataclass(frozen=True, slots=True)
class JournalState:
    """Where a journal ends: all that is needed to go on."""

    sequence: int
    finalized: BlockId
    safe: BlockId
    links: tuple[BlockLink, ...]
    """Canonical blocks above the finalized one, oldest first."""

    @property
    def head(self) -> BlockId:
        return self.links[-1].id if self.links else self.finalized


def compute_state(checkpoint: BlockId, steps: Iterable[ChainStep]) -> JournalState:
    """The state after performing the steps, from the checkpoint on or from any finalized block."""
    sequence, finalized, safe = 0, checkpoint, checkpoint
    links: list[BlockLink] = []
    for step in steps:
        sequence = step.sequence
        if step.step is Step.APPLY:
            links.append(BlockLink(step.number, step.hash, step.parent_hash, step.trust))
        elif step.step is Step.UNDO:
            undone = links.pop()
            assert undone.hash == step.hash, f"step {sequence} undoes what is not the head"
            safe = min(safe, links[-1].id if links else finalized)
        elif step.finality is Finality.SAFE:
            safe = BlockId(step.number, step.hash)
        else:
            finalized = BlockId(step.number, step.hash)
            safe = max(safe, finalized)
            links = [link for link in links if link.number > finalized.number]
    return JournalState(sequence, finalized, safe, tuple(links))


def verify_sequence(last: int, steps: Iterable[ChainStep]) -> None:
    """Steps follow what is journalled, and one another."""
    for expected, step in enumerate(steps, start=last + 1):
        if step.sequence != expected:
            raise InvalidRequest(
                Reason.STALE_SEQUENCE,
                f"step `{step.sequence}` cannot follow step `{expected - 1}`",
                hint="read the journal's state again before appending",
            )

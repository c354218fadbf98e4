"""A feed with a past: a chain that lives through random reorgs, journalled step by step, its logs in the outbox.

What the chain plainly holds is kept beside it, as the oracle for whoever reads the feed.
"""

import random
from collections.abc import Sequence
from pathlib import Path

from proofcast.chain.segment import BlockId
from proofcast.chain.steps import BlockLink, CanonicalChain, ChainStep
from proofcast.chain.trust import Trust
from proofcast.ethereum.receipt import Log
from proofcast.event import Finality, Position, Step
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.feed.outbox import OutboxRow

CHAIN_ID = 31337
START = BlockId(100, bytes(32))
SECONDS_PER_BLOCK = 12

LogName = tuple[bytes, int]
"""Hash of the block and index of the log."""


class Story:
    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.chain = CanonicalChain(START)
        self.path = [START]
        """The canonical blocks."""
        self.logs: dict[bytes, list[Log]] = {}
        """Of every block that ever was, by hash."""
        self._writer = Journal(folder).open_writer(CHAIN_ID, START)
        self._outbox = Outbox(folder)
        self._abandoned: list[BlockLink] = []

    # --- what happens

    def grow(self) -> None:
        """A few blocks on top of a recent one; sometimes on a branch that was abandoned before."""
        depth = self.random.choice((0, 0, 0, 1, 2, 3))
        floor = self.path.index(self.chain.get_settled(Finality.FINALIZED))
        place = max(floor, len(self.path) - 1 - depth)
        branch = [link for link in self._abandoned if link.parent_hash == self.path[place].hash][:1]
        while len(branch) < depth + 1:
            above = branch[-1].id if branch else self.path[place]
            branch.append(self.make_block(above, [self.make_log() for _ in range(self.random.randrange(4))]))
        self.adopt(branch)

    def settle(self) -> None:
        """The safe or the finalized block moves up, or stays."""
        finality = self.random.choice((Finality.SAFE, Finality.FINALIZED))
        settled = self.path.index(self.chain.get_settled(finality))
        self.finalize(self.path[min(len(self.path) - 1, settled + self.random.randrange(3))], finality)

    def make_block(self, parent: BlockId, logs: Sequence[Log]) -> BlockLink:
        link = BlockLink(parent.number + 1, self.random.randbytes(32), parent.hash)
        self.logs[link.hash] = list(logs)
        return link

    def make_log(self) -> Log:
        return Log(bytes(20), (), b"")

    def adopt(self, branch: Sequence[BlockLink]) -> None:
        """Make a branch canonical; on disk and in the outbox when this returns."""
        place = next(at for at, block in enumerate(self.path) if block.hash == branch[0].parent_hash)
        gone = zip(self.path[place:], self.path[place + 1 :], strict=False)
        self._abandoned += [BlockLink(block.number, block.hash, parent.hash) for parent, block in gone]
        self.path[place + 1 :] = [link.id for link in branch]
        self._record(self.chain.adopt(branch))

    def finalize(self, block: BlockId, finality: Finality = Finality.FINALIZED) -> None:
        self._record(self.chain.settle(finality, block))

    def _record(self, steps: Sequence[ChainStep]) -> None:
        self.journal(steps)
        self.deliver(steps)

    def journal(self, steps: Sequence[ChainStep]) -> None:
        self._writer.append(steps)

    def deliver(self, steps: Sequence[ChainStep]) -> None:
        rows = [self._build_row(step, at) for step in steps for at in range(len(self.logs.get(step.hash, ())))]
        self._outbox.write([row for row in rows if row.step is not Step.FINAL], self.chain.sequence)

    def _build_row(self, step: ChainStep, log_index: int) -> OutboxRow:
        position = Position(CHAIN_ID, step.number, step.hash, 0, log_index)
        timestamp, log = step.number * SECONDS_PER_BLOCK, self.logs[step.hash][log_index]
        return OutboxRow(step.sequence, step.step, Trust.LINKED, timestamp, position, None, log)

    # --- what is true

    def list_logs(self, level: Finality) -> list[LogName]:
        """Everything that is settled at this level, in the chain's order."""
        end = self.path.index(self.chain.get_settled(level))
        return [(block.hash, at) for block in self.path[1 : end + 1] for at in range(len(self.logs[block.hash]))]

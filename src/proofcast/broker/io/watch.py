"""What the feed says of the chain: blocks, their age, reorgs. It is read by whoever asks, in any thread."""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from proofcast.broker.measures import Reorg, find_reorgs
from proofcast.chain.segment import BlockId
from proofcast.errors import Unavailable
from proofcast.event import Finality
from proofcast.feed.io.headers import Headers
from proofcast.feed.io.history import History
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal

STEPS_LOOKED_AT = 10_000
"""Behind the newest one, for reorgs: more than a day of a chain with a block every twelve seconds."""
REORGS_MAX = 20
"""Listed at once."""


@dataclass(slots=True)
class FeedWatch:
    folder: Path
    journal: Journal = field(init=False)
    history: History = field(init=False)
    headers: Headers = field(init=False)
    outbox: Outbox = field(init=False)
    _head: BlockId | None = None
    _made_at: float = 0.0
    """When the head was made, by its header; when it was first seen, where that is not kept."""

    def __post_init__(self) -> None:
        self.journal, self.history = Journal(self.folder), History(self.folder)
        self.headers, self.outbox = Headers(self.folder), Outbox(self.folder)

    def close(self) -> None:
        for part in (self.journal, self.history, self.headers, self.outbox):
            part.close()

    def get_newest(self, level: Finality) -> BlockId:
        return self.history.get_newest(level).block

    def get_sequence(self) -> int:
        """Of the newest step; 0 where nothing is journalled yet."""
        with suppress(Unavailable):
            return self.journal.read_state().sequence
        return 0

    def compute_lag(self) -> int:
        """Steps journalled whose events are not found yet."""
        return self.journal.read_state().sequence - self.outbox.get_sequence()

    def get_age_s(self) -> float:
        """Of the newest verified block."""
        head = self.get_newest(Finality.LATEST)
        if head != self._head:
            header = self.headers.find(head.hash)
            self._head, self._made_at = head, float(header.timestamp) if header else time.time()
        return max(0.0, time.time() - self._made_at)

    def list_reorgs(self) -> list[Reorg]:
        """The newest ones among the last steps, newest first."""
        undone = self.journal.list_undone(self.outbox.get_sequence() - STEPS_LOOKED_AT)
        return find_reorgs(undone)[: -REORGS_MAX - 1 : -1]

"""When a frame is cut, and from what.

Entries wait until the epoch has lasted `epoch_s`, or sooner when they fill a frame; attestor and shards may be a few
frames behind, no more, so that a slow one slows the clients instead of filling memory. Without entries an empty frame
is cut every `idle_s`: time-outs count sequences, and the order must go on when nobody speaks.
"""

from collections import deque
from dataclasses import dataclass, field

from proofcast.groups.proof import INDEX_BITS

FRAME_BYTES_SOFT = 4 << 20
"""A frame this large is cut at once: one write amortises its sync, and memory stays small."""
FRAME_MESSAGES_MAX = 1 << INDEX_BITS
IN_WORK_MAX = 3
"""Frames in work: one at the disk, one at the attestor, one at the shards."""


@dataclass(slots=True)
class Cutter:
    epoch_s: float
    idle_s: float
    began: float
    """When the last frame was cut."""
    waiting: deque[tuple[int, bytes]] = field(default_factory=deque)
    """(messages, entries) as the shards sent them, none ever split."""
    waiting_bytes: int = 0
    in_work: int = 0

    def add(self, messages: int, entries: bytes) -> None:
        self.waiting.append((messages, entries))
        self.waiting_bytes += len(entries)

    def get_delay(self, now: float) -> float | None:
        """Seconds until a frame can be cut; None while attestor or shards must catch up first."""
        if self.in_work >= IN_WORK_MAX:
            return None
        if self.waiting_bytes >= FRAME_BYTES_SOFT:
            return 0
        return max(0, self.began + (self.epoch_s if self.waiting else self.idle_s) - now)

    def cut(self, now: float) -> list[bytes]:
        """The next frame, in parts; what does not fit waits for the one after."""
        parts: list[bytes] = []
        messages = size = 0
        while self.waiting and size < FRAME_BYTES_SOFT and messages + self.waiting[0][0] <= FRAME_MESSAGES_MAX:
            count, entries = self.waiting.popleft()
            messages, size = messages + count, size + len(entries)
            parts.append(entries)
        self.waiting_bytes -= size
        self.began, self.in_work = now, self.in_work + 1
        return parts

    def note_done(self) -> None:
        self.in_work -= 1

"""The way to one neighbour: what waits to be written to it, and when that is due."""

from dataclasses import dataclass, field

import trio
from libp2p.abc import INetStream

from proofcast.overlay.identity import Contact
from proofcast.overlay.messages import Ack, Message, Settled

PATIENT = (Ack, Settled)
"""Nobody waits for these but memory: they go with the next message, or when they have waited for a while."""
PATIENCE_S = 0.5
"""Far below the seconds after which a missing acknowledgement has an event sent again, on every step of a deep tree."""


@dataclass(slots=True)
class Line:
    """A stream once it is open, and what waits to be written."""

    contact: Contact
    stream: INetStream | None = None
    waiting: list[Message] = field(default_factory=list)
    due: float = float("inf")
    """When what waits is to be written, by trio's clock."""
    wake: trio.Event = field(default_factory=trio.Event)
    used: float = 0.0
    is_closed: bool = False

    def close(self) -> None:
        self.is_closed = True
        self.wake.set()

    def add(self, message: Message) -> None:
        self.waiting.append(message)
        due = trio.current_time() + (PATIENCE_S if isinstance(message, PATIENT) else 0.0)
        if due < self.due:
            self.due = due
            self.wake.set()

    async def wait_until_due(self, rested: float) -> bool:
        """False where the line was closed meanwhile."""
        while not self.is_closed and (due := max(self.due, rested)) > trio.current_time():
            self.wake = trio.Event()
            with trio.move_on_at(due):
                await self.wake.wait()
        return not self.is_closed

"""Which events this peer has delivered: for each session of a publisher the newest sequence and a window behind it.

Bit `i` of a window is the event `newest - i`. What lies behind the window counts as delivered: a repetition must never
be taken for news, and the promise of repair ends at the window anyway.
"""

from collections import OrderedDict
from dataclasses import dataclass

from proofcast.overlay.records import EventId
from proofcast.overlay.settings import SESSIONS_MAX, WINDOW_EVENTS

WINDOW_MASK = (1 << WINDOW_EVENTS) - 1


@dataclass(frozen=True, slots=True)
class Mark:
    """A session's window, as it is stored."""

    publisher: bytes
    session: int
    newest: int
    window: int


class Seen:
    def __init__(self, marks: tuple[Mark, ...] = ()) -> None:
        self._windows: OrderedDict[tuple[bytes, int], tuple[int, int]] = OrderedDict(
            ((mark.publisher, mark.session), (mark.newest, mark.window)) for mark in marks
        )

    def __contains__(self, event_id: EventId) -> bool:
        newest, window = self._windows.get(event_id[:2], (0, 0))
        age = newest - event_id.sequence
        return age >= WINDOW_EVENTS or (age >= 0 and bool(window >> age & 1))

    def add(self, event_id: EventId) -> Mark:
        """Mark it and return what to store."""
        newest, window = self._windows.pop(event_id[:2], (0, 0))
        ahead = event_id.sequence - newest
        if ahead > 0:
            newest, window = event_id.sequence, (window << min(ahead, WINDOW_EVENTS) | 1) & WINDOW_MASK
        else:
            window |= 1 << -ahead
        self._windows[event_id[:2]] = newest, window
        if len(self._windows) > SESSIONS_MAX:
            self._windows.popitem(last=False)
        return Mark(*event_id[:2], newest, window)

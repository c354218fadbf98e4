"""The newest deliveries of one finality, kept once for all who are up to date.

Every entry has a place, counted from 0 for ever; the oldest entries leave when the ring is full. Somebody whose view is
that of an entry goes on from the next place; somebody whose view has left the ring reads history until it is back.
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from proofcast.broker.entry import Entry
from proofcast.feed.view import View

ENTRIES_MAX = 8_192
"""About twenty megabytes of events of one kilobyte: minutes of a busy chain."""


class Ring:
    def __init__(self, view: View, capacity: int = ENTRIES_MAX) -> None:
        self.view = view
        """Behind everything."""
        self.end = 0
        """The place of the next entry."""
        self._capacity = capacity
        self._entries: deque[Entry] = deque()
        self._places: dict[View, int] = {}
        """Where to go on from a view."""
        self._noted: deque[tuple[View, int]] = deque()
        """The same in order, to be forgotten in that order."""
        self._note(view)

    @property
    def first(self) -> int:
        return self.end - len(self._entries)

    def append(self, entries: Iterable[Entry], view: View) -> None:
        """Take entries in order; `view` is the one behind them, which may be further than the last of them."""
        for entry in entries:
            self._entries.append(entry)
            self.end += 1
            self._note(entry.view)
            if len(self._entries) > self._capacity:
                self._entries.popleft()
        if self._places.get(view) != self.end:
            self._note(view)
        self.view = view
        # Blocks without an entry make no room for themselves, so views are counted too.
        while self._noted[0][1] < self.first or len(self._noted) > 2 * self._capacity:
            self._forget(*self._noted.popleft())

    def find_place(self, view: View) -> int | None:
        """Where to go on from this view; None where that is no longer, or not yet, in the ring."""
        return self._places.get(view)

    def read(self, place: int, limit: int) -> list[Entry]:
        """Entries from a place that is still in the ring."""
        assert place >= self.first, (place, self.first)
        return list(islice(self._entries, place - self.first, place - self.first + limit))

    def _note(self, view: View) -> None:
        self._places[view] = self.end
        self._noted.append((view, self.end))

    def _forget(self, view: View, place: int) -> None:
        if self._places.get(view) == place:  # else it has come again since, further on
            del self._places[view]

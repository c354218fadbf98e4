"""Exchanges and queues as they are now, read from the logs that the feed keeps; they were verified when they came."""

import threading
from itertools import groupby
from pathlib import Path

from proofcast.broker.books import Books, ExchangeBook, QueueBook
from proofcast.event import Step
from proofcast.feed.io.history import History
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.outbox import OutboxRow
from proofcast.feed.publication import read_exchange_log

BEGINNING = (-(2**62), -1)
"""Before what was put before the feed, too."""


class BookReader:
    def __init__(self, folder: Path, exchanges_address: bytes) -> None:
        self._outbox, self._history, self._address = Outbox(folder), History(folder), exchanges_address
        self._books, self._read_to = Books(), BEGINNING
        self._oldest = 0
        """The block behind which the feed began at the last look."""
        self._lock = threading.Lock()

    def close(self) -> None:
        self._outbox.close()
        self._history.close()

    def read(self) -> tuple[list[ExchangeBook], list[QueueBook]]:
        with self._lock:
            self._follow()
            return self._books.list_exchanges(), self._books.list_queues()

    def _follow(self) -> None:
        """Read what came since the last look; all again where something older was put before it.

        What the feed forgets stays in the books.
        """
        oldest = self._history.get_oldest().block.number
        if oldest < self._oldest:
            self._books, self._read_to = Books(), BEGINNING
        self._oldest = oldest
        for _, rows in groupby(self._read_rows(), lambda row: row.sequence):
            self._take(list(rows))

    def _read_rows(self) -> list[OutboxRow]:
        chain_id, found = self._history.get_chain_id(), list[OutboxRow]()
        while rows := self._outbox.read(chain_id, self._read_to):
            self._read_to = (rows[-1].sequence, rows[-1].position.log_index)
            found += [row for row in rows if row.log.address == self._address]
        return found

    def _take(self, rows: list[OutboxRow]) -> None:
        """What one step applies, or undoes: the newest log first."""
        is_undo = rows[0].step is Step.UNDO
        for row in reversed(rows) if is_undo else rows:
            event = read_exchange_log(row.log, self._address)
            if event:
                (self._books.undo if is_undo else self._books.apply)(event)

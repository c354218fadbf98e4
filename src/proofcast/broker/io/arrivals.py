"""Messages of exchanges among the logs of the feed, each with the queues that it reached."""

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from proofcast.broker.catalogue import Catalogue
from proofcast.broker.entry import MESSAGE
from proofcast.feed.io.history import History
from proofcast.feed.outbox import parse_row
from proofcast.feed.publication import read_arrival, read_message
from proofcast.feed.view import Move

STEPS_KEPT = 16
"""Whose arrivals are remembered: rings of three finalities and those who are behind ask for the same again."""

ByMessage = dict[tuple[int, bytes, int], frozenset[bytes]]
"""Queues by transaction, exchange and number of the message."""


@dataclass(frozen=True, slots=True)
class Message:
    topic: bytes
    queues: frozenset[bytes]


class Arrivals:
    def __init__(self, history: History, catalogue: Catalogue) -> None:
        self._history, self._catalogue = history, catalogue
        self._read_step = lru_cache(maxsize=STEPS_KEPT)(self._read_arrivals)

    def find(self, move: Move) -> Message | None:
        """The message that a log of `Exchanges` publishes; None for what else it says, from which names are learnt."""
        log = move.row.log
        routed = read_message(log, self._catalogue.exchanges_address)
        if routed is None:
            self._catalogue.read_exchange(log)
            return None
        place = (move.record.transaction_index, routed.exchange, routed.sequence)
        return Message(MESSAGE + routed.exchange, self._read_step(move.record.sequence).get(place, frozenset()))

    def _read_arrivals(self, step: int) -> ByMessage:
        """Of all messages of a block: which queue got one is said after it, in the same transaction."""
        address = self._catalogue.exchanges_address
        found: defaultdict[tuple[int, bytes, int], set[bytes]] = defaultdict(set)
        for row in self._history.list_step(step, address):
            arrival = read_arrival(parse_row(row, 0).log, address)
            if arrival:
                queue, exchange, sequence = arrival
                found[row[7], exchange, sequence].add(queue)
        return {place: frozenset(queues) for place, queues in found.items()}

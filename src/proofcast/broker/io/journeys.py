"""Journeys of events, read from the blocks and logs that the feed keeps; they were verified when they came."""

import threading
from pathlib import Path

from proofcast.broker.io.evidence import EVENT_ID
from proofcast.broker.journey import Journey, trace_journey
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.onchain.events import Subscribed, compute_type_hash, find_event
from proofcast.onchain.io.artefacts import get_exchanges

SUBSCRIBED = compute_type_hash(Subscribed)


class JourneyReader:
    def __init__(self, folder: Path, topics_address: bytes) -> None:
        self._journal, self._outbox, self._topics_address = Journal(folder), Outbox(folder), topics_address
        self._subscribers: dict[tuple[bytes, int], bytes] = {}
        """Contract by topic and index; an index is given to the next one after its holder has left."""
        self._read_to = (0, -1)
        self._lock = threading.Lock()

    def close(self) -> None:
        self._journal.close()
        self._outbox.close()

    def read(self, event_id: str) -> Journey:
        parts = EVENT_ID.fullmatch(event_id)
        if parts is None:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"`{ascii(event_id[:120])[1:-1]}` is no event's id",
                hint="write it as it was delivered",
            )
        chain_id, log_index, block_hash = int(parts[1]), int(parts[3]), bytes.fromhex(parts[4])
        block = self._journal.find_block(block_hash) if chain_id == self._journal.get_chain_id() else None
        if block is None:
            raise Unavailable(
                Reason.NOT_YET,
                f"block `0x{block_hash.hex()}` of chain `{chain_id}` is not kept here",
                hint="ask a broker that follows this contract and chain",
            )
        return trace_journey(block, self._topics_address, get_exchanges(self._topics_address), log_index)

    def find_subscriber(self, topic: bytes, index: int) -> bytes:
        """The contract behind an index, empty where its subscription was not seen."""
        with self._lock:
            self._learn(self._journal.get_chain_id())
            return self._subscribers.get((topic, index), b"")

    def _learn(self, chain_id: int) -> None:
        """Read what came since the last look."""
        while rows := self._outbox.read(chain_id, self._read_to):
            for row in rows:
                self._read_to = (row.sequence, row.position.log_index)
                if row.log.address == self._topics_address and row.log.topics[:1] == (SUBSCRIBED,):
                    found = find_event(row.log.topics, row.log.data)
                    assert isinstance(found, Subscribed)
                    self._subscribers[found.topic, found.index] = found.subscriber

"""The recent past: what a rendezvous keeps of each key for late joiners and for repair, bounded in number and age."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256

import cbor2

from proofcast.overlay.records import Digest, Event, EventId
from proofcast.overlay.settings import DIGEST_EVENTS_MAX, LOG_EVENTS_MAX, LOG_KEYS_MAX
from proofcast.routing.predicate import Predicate, matches

Log = OrderedDict[EventId, tuple[int, Event]]
"""Id to (when it was logged here in milliseconds, the event), oldest first."""


class Logs:
    def __init__(self, kept_s: float) -> None:
        self._kept_ms = int(kept_s * 1000)
        self._logs: OrderedDict[int, Log] = OrderedDict()
        self._held: dict[int, dict[EventId, None]] = {}
        """Events this peer took in as a rendezvous, or from one: to be handed over when a closer peer comes."""

    def add(self, key: int, event: Event, now_ms: int) -> bool:
        """Is it new to the log of the key?"""
        log = self._logs.setdefault(key, OrderedDict())
        if event.id in log:
            return False
        log[event.id] = now_ms, event
        while log and (len(log) > LOG_EVENTS_MAX or next(iter(log.values()))[0] < now_ms - self._kept_ms):
            self.release(key, log.popitem(last=False)[0])
        if len(self._logs) > LOG_KEYS_MAX:
            self._held.pop(self._logs.popitem(last=False)[0], None)
        return True

    def hold(self, key: int, event_id: EventId) -> None:
        self._held.setdefault(key, {})[event_id] = None

    def release(self, key: int, event_id: EventId) -> None:
        self._held.get(key, {}).pop(event_id, None)

    def get_held_keys(self) -> list[int]:
        return list(self._held)

    def get_held(self, key: int) -> list[Event]:
        found = (self.find(key, event_id) for event_id in self._held.get(key, ()))
        return [event for event in found if event is not None]

    def find(self, key: int, event_id: EventId) -> Event | None:
        log = self._logs.get(key)
        return log[event_id][1] if log and event_id in log else None

    def expire(self, now_ms: int) -> None:
        for key, log in list(self._logs.items()):
            while log and next(iter(log.values()))[0] < now_ms - self._kept_ms:
                self.release(key, log.popitem(last=False)[0])
            if not log:
                del self._logs[key]
                self._held.pop(key, None)

    def make_digest(self, key: int, filters: Sequence[Predicate], since_ms: int, now_ms: int) -> Digest:
        """The ids of what passed the filters since then, oldest first; a full page ends where the next one begins."""
        ids: list[EventId] = []
        until_ms = now_ms
        for logged_ms, event in self._logs.get(key, {}).values():
            if logged_ms >= since_ms and any(matches(predicate, event.attributes) for predicate in filters):
                if len(ids) == DIGEST_EVENTS_MAX:
                    until_ms = logged_ms
                    break
                ids.append(event.id)
        return Digest(key, since_ms, until_ms, len(ids), compute_chain(ids), tuple(ids))


def compute_chain(ids: Sequence[EventId]) -> bytes:
    chain = b""
    for event_id in ids:
        chain = sha256(chain + cbor2.dumps(list(event_id))).digest()
    return chain

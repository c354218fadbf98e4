"""Asking for the recent past: what a late joiner wants, and what repairs a path that lost or swallowed events.

At every refresh, and when a subscription begins, a peer looks up the closest peers to the key of its subscriptions and
asks them directly, not along the tree: a signed count and chain of the ids that should have come since it last asked
that peer. What it lacks it fetches. So an interior peer that acknowledges events and drops them delays them by one
refresh at most, and so do a partition and an absence, within what the log keeps.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import partial

from proofcast.overlay.finding import Finding
from proofcast.overlay.identity import Contact
from proofcast.overlay.inbox import SKEW_MS, Inbox
from proofcast.overlay.logs import Logs, compute_chain
from proofcast.overlay.messages import Fetch, Recall, Recalled, Replay
from proofcast.overlay.records import Event, is_event_genuine
from proofcast.overlay.seat import Seat, get_ms
from proofcast.overlay.settings import DIGEST_EVENTS_MAX, FILTERS_MAX, LOG_KEYS_MAX
from proofcast.overlay.trunks import Trunks

SOURCES = 2
"""The rendezvous and its first heir: a single liar among the two hides nothing."""
PAGE_BYTES_MAX = 512 * 1024
"""Half of what a frame holds, because the sizes are estimates."""
EVENT_BYTES = 512
"""About what an event needs besides its payload."""


class Recalls:
    def __init__(self, seat: Seat, finding: Finding, inbox: Inbox, trunks: Trunks, logs: Logs) -> None:
        self._seat = seat
        self._finding = finding
        self._inbox = inbox
        self._trunks = trunks
        self._logs = logs
        self._asked_until: OrderedDict[tuple[int, bytes], int] = OrderedDict()
        """(key, peer) to the time, by that peer's clock, up to which its log is known."""

    def refresh(self, now: float) -> None:
        for key in sorted(set(self._trunks.own.values())):
            self.start(key, now)

    def start(self, key: int, now: float) -> None:
        self._finding.find(key, partial(self._ask_sources, key), now)

    def _ask_sources(self, key: int, contacts: list[Contact], now: float) -> None:
        for contact in contacts[:SOURCES]:
            self._ask(key, contact)

    def _ask(self, key: int, contact: Contact) -> None:
        filters = self._trunks.get_own(key)[:FILTERS_MAX]
        if filters:
            began = min(self._inbox.wanted[predicate] for predicate in filters) - SKEW_MS
            since = self._asked_until.get((key, contact.public_key), max(began, 0))
            self._seat.send(contact, Recall(key, tuple(filters), since))

    def forget_progress(self, key: int) -> None:
        """A new subscription under the key wants the past from its own beginning."""
        for name in [name for name in self._asked_until if name[0] == key]:
            del self._asked_until[name]

    def receive_digest(self, sender: Contact, message: Recalled) -> None:
        digest = message.digest
        is_signed = self._seat.verify(sender.public_key, digest.encode_claim(), digest.signature)
        if not is_signed or digest.count != len(digest.ids) or digest.chain != compute_chain(digest.ids):
            self._seat.counts["forged"] += 1
            return
        missing = tuple(event_id for event_id in digest.ids if event_id not in self._inbox.seen)
        if missing:
            self._seat.send(sender, Fetch(digest.key, missing))
        elif digest.until_ms > digest.since_ms:
            self._asked_until[digest.key, sender.public_key] = digest.until_ms
            if len(self._asked_until) > LOG_KEYS_MAX:
                self._asked_until.popitem(last=False)
        if digest.count == DIGEST_EVENTS_MAX and not missing:
            self._ask(digest.key, sender)

    def receive_replay(self, sender: Contact, message: Replay) -> None:
        """Deliver what is genuine and wanted; progress is made at the next digest, which must hold nothing new."""
        self._seat.counts["repaired"] += sum(self._offer(event) for event in message.events)

    def _offer(self, event: Event) -> bool:
        if not is_event_genuine(event, self._seat.verify):
            self._seat.counts["forged"] += 1
            return False
        return self._inbox.offer_past(event)

    # --- the side that is asked

    def answer(self, sender: Contact, message: Recall, now: float) -> None:
        digest = self._logs.make_digest(message.key, message.filters[:FILTERS_MAX], message.since_ms, get_ms(now))
        self._seat.send(sender, Recalled(self._seat.sign(digest)))

    def replay(self, sender: Contact, message: Fetch) -> None:
        found = (self._logs.find(message.key, event_id) for event_id in message.ids[:DIGEST_EVENTS_MAX])
        for page in cut_pages([event for event in found if event is not None]):
            self._seat.send(sender, Replay(message.key, page))


def cut_pages(events: Iterable[Event]) -> Iterator[tuple[Event, ...]]:
    """Events in order, in pages that fit a frame."""
    page: list[Event] = []
    size = 0
    for event in events:
        if page and size + len(event.payload) > PAGE_BYTES_MAX:
            yield tuple(page)
            page, size = [], 0
        page.append(event)
        size += len(event.payload) + EVENT_BYTES
    if page:
        yield tuple(page)

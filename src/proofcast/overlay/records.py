"""What peers say and sign: events, statements of interest, adverts. Whoever holds one can check it alone."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import cbor2

from proofcast.overlay.identity import Contact, Signer, Verify, compute_key
from proofcast.routing.attributes import EventAttributes
from proofcast.routing.predicate import Predicate, matches


class EventId(NamedTuple):
    """Three numbers kept apart, so that no two events can share an id."""

    publisher: bytes
    session: int
    """Chosen when the publisher starts; later ones are larger."""
    sequence: int
    """Counted within the session from 1."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something published, signed by its publisher over everything else in it."""

    id: EventId
    born_ms: int
    """The publisher's clock, in milliseconds since 1970."""
    attributes: EventAttributes
    payload: bytes
    signature: bytes = b""

    def encode_claim(self) -> bytes:
        return cbor2.dumps(["proofcast event", *self.id, self.born_ms, format_text(self.attributes), self.payload])


@dataclass(frozen=True, slots=True)
class Interest:
    """A peer's statement: "of the events of this rendezvous key, send me those that pass one of these filters".

    It replaces every earlier statement of the same peer under the same key, and one without filters withdraws them:
    so narrower filters appear in the very statement that takes the wider one back.
    """

    origin: Contact
    key: int
    version: int
    """Milliseconds since 1970 or one more than the last, so that a restarted peer's statements count as newer."""
    filters: tuple[Predicate, ...]
    wants_all: bool
    """Too many filters to state: every event of the key."""
    backups: tuple[Contact, ...]
    """Who can forward in the peer's place while it does not answer."""
    rendezvous_of: tuple[int, ...] = ()
    """Keys whose events reach everybody for whom this is stated in any case, because each is their rendezvous: events
    that carry one need not be sent under this key."""
    signature: bytes = field(default=b"", repr=False)

    def encode_claim(self) -> bytes:
        texts = [format_text(predicate) for predicate in self.filters]
        backups = [backup.public_key for backup in self.backups]
        who = [self.origin.public_key, self.origin.address]
        return cbor2.dumps(
            [
                "proofcast interest",
                who,
                self.key,
                self.version,
                texts,
                self.wants_all,
                backups,
                list(self.rendezvous_of),
            ]
        )

    @property
    def is_withdrawal(self) -> bool:
        return not self.filters and not self.wants_all

    def is_interested(self, attributes: EventAttributes) -> bool:
        wants = self.wants_all or any(matches(predicate, attributes) for predicate in self.filters)
        return wants and not (self.rendezvous_of and self._has_anyway(attributes))

    def _has_anyway(self, attributes: EventAttributes) -> bool:
        return any(compute_key(name) in self.rendezvous_of for name in attributes.by_name)


@dataclass(frozen=True, slots=True)
class Advert:
    """A multicast group that anybody may join at its publisher."""

    publisher: Contact
    predicate: Predicate
    version: int
    is_open: bool
    """False closes the group: the advert leaves the boards."""
    signature: bytes = field(default=b"", repr=False)

    def encode_claim(self) -> bytes:
        who = [self.publisher.public_key, self.publisher.address]
        return cbor2.dumps(["proofcast advert", who, format_text(self.predicate), self.version, self.is_open])


@dataclass(frozen=True, slots=True)
class Digest:
    """What a rendezvous has logged under a key since a time, for somebody's filters: a count, a chain, the ids."""

    key: int
    since_ms: int
    until_ms: int
    """The rendezvous' clock: ask again from here."""
    count: int
    chain: bytes
    """SHA-256 over the chain so far and the next id, beginning with nothing: equal chains are equal lists."""
    ids: tuple[EventId, ...]
    signature: bytes = field(default=b"", repr=False)

    def encode_claim(self) -> bytes:
        return cbor2.dumps(["proofcast digest", self.key, self.since_ms, self.until_ms, self.count, self.chain])


@lru_cache(maxsize=1 << 14)
def format_text(content: Predicate | EventAttributes) -> str:
    return str(content)


def sign_event(signer: Signer, event: Event) -> Event:
    return Event(event.id, event.born_ms, event.attributes, event.payload, signer.sign(event.encode_claim()))


def is_event_genuine(event: Event, verify: Verify) -> bool:
    return verify(event.id.publisher, event.encode_claim(), event.signature)


def is_interest_genuine(interest: Interest, verify: Verify) -> bool:
    return verify(interest.origin.public_key, interest.encode_claim(), interest.signature)


def is_advert_genuine(advert: Advert, verify: Verify) -> bool:
    return verify(advert.publisher.public_key, advert.encode_claim(), advert.signature)

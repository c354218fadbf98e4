"""What a lying server does to one client's view of an epoch.

A view is the list of messages with their places that a client is told of. An honest server derives every view from one
list; a lie is a function from the victim's view to another one, or None where there is no occasion for it yet.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from proofcast.groups.packet import Delivery
from proofcast.groups.proof import INDEX_BITS, Row
from proofcast.groups.series import Envelope, Form, Message, make_sent_row


class ServerLie(Enum):
    """What a server may do to one victim; in the order of the paper's section V-B."""

    DROP = "drop"
    CHANGE_COMMON = "change the common ciphertext"
    CHANGE_CIPHERTEXT = "change the recipient's ciphertext"
    REORDER = "swap two messages"
    SPLIT_RECIPIENTS = "show another list of recipients"
    CHANGE_SEQUENCE = "deliver at another sequence"
    TEAR_SERIES = "put a gap into a series"
    REPLAY = "deliver an old message again"
    COLLUDE = "deliver what a confederate made for the victim alone"
    OVERLAP = "attest a range twice"
    TWO_CHECKPOINTS = "sign two checkpoints of an epoch"
    FORK = "drop a message and keep the victim under a chain of its own"
    BAD_SIGNATURE = "sign wrongly"
    STALE_ATTESTATION = "present an old attestation"
    OTHER_ROWS = "attest other rows than were delivered"


UNPROVABLE = frozenset({ServerLie.BAD_SIGNATURE, ServerLie.STALE_ATTESTATION, ServerLie.OTHER_ROWS})
"""Detected on reception; nothing is signed that contradicts anything, so nothing can be shown to a stranger."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A message at its place of the order."""

    sequence: int
    series: bytes
    index: int
    count: int
    message: Message

    def make_sent_row(self) -> Row:
        return make_sent_row(self.message, self.sequence, self.series, self.index, self.count)

    def make_delivery(self, client: bytes) -> Delivery:
        message = self.message
        (own,) = (one for one in message.envelopes if one.recipient == client)
        place = self.sequence, message.sender, self.series, self.index, self.count
        return Delivery(*place, message.common, message.recipients, own.form, own.ciphertext)


View = list[Placed]
"""What one client is told of an epoch."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a lie may use besides the view."""

    random: Random
    victim: bytes
    epoch: int
    log: View
    variants: Mapping[bytes, Message]
    """Messages of a confederate, by the common ciphertext they are to replace for the victim."""


Falsifier = Callable[[View, Occasion], View | None]


def find_foreign(view: View, victim: bytes) -> list[int]:
    """Places of messages that are not the victim's own."""
    return [place for place, one in enumerate(view) if one.message.sender != victim]


def drop(view: View, occasion: Occasion) -> View | None:
    foreign = find_foreign(view, occasion.victim)
    if not foreign:
        return None
    gone = occasion.random.choice(foreign)
    return view[:gone] + view[gone + 1 :]


def change_one(change: Callable[[Message, Occasion], Message]) -> Falsifier:
    def falsify(view: View, occasion: Occasion) -> View | None:
        foreign = find_foreign(view, occasion.victim)
        if not foreign:
            return None
        place = occasion.random.choice(foreign)
        changed = replace(view[place], message=change(view[place].message, occasion))
        return [*view[:place], changed, *view[place + 1 :]]

    return falsify


def change_common(message: Message, occasion: Occasion) -> Message:
    return replace(message, common=flip_bit(message.common, occasion.random))


def change_ciphertext(message: Message, occasion: Occasion) -> Message:
    envelopes = tuple(
        replace(one, ciphertext=flip_bit(one.ciphertext, occasion.random)) if one.recipient == occasion.victim else one
        for one in message.envelopes
    )
    return replace(message, envelopes=envelopes)


def flip_bit(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


def split_recipients(message: Message, occasion: Occasion) -> Message:
    """Hide a third recipient, or invent one where there are only two."""
    others = [one for one in message.envelopes if one.recipient not in (occasion.victim, message.sender)]
    if others:
        hidden = occasion.random.choice(others)
        return replace(message, envelopes=tuple(one for one in message.envelopes if one is not hidden))
    invented = Envelope(occasion.random.randbytes(32), Form.NORMAL, b"")
    return replace(message, envelopes=tuple(sorted((*message.envelopes, invented), key=lambda one: one.recipient)))


def reorder(view: View, occasion: Occasion) -> View | None:
    """Two messages, one at least from another, exchange their places."""
    pairs = [(a, b) for a in find_foreign(view, occasion.victim) for b in range(len(view)) if a != b]
    if not pairs:
        return None
    a, b = occasion.random.choice(pairs)
    changed = list(view)
    changed[a] = replace(view[b], sequence=view[a].sequence)
    changed[b] = replace(view[a], sequence=view[b].sequence)
    return changed


def change_sequence(view: View, occasion: Occasion) -> View | None:
    """Later than it stands, but after the same messages as before: the last of the epoch."""
    if not view or view[-1].message.sender == occasion.victim:
        return None
    return [*view[:-1], replace(view[-1], sequence=view[-1].sequence + occasion.random.randint(1, 1_000))]


def tear_series(view: View, occasion: Occasion) -> View | None:
    """Between the last two messages of a series, both for the victim, there is a gap."""
    if len(view) < 2 or view[-1].series != view[-2].series:
        return None
    return change_sequence(view, occasion)


def replay(view: View, occasion: Occasion) -> View | None:
    before = occasion.epoch << INDEX_BITS
    old = [one for one in occasion.log if occasion.victim in one.message.recipients and one.sequence < before]
    old = [one for one in old if one.message.sender != occasion.victim]
    if not old:
        return None
    return [*view, replace(occasion.random.choice(old), sequence=before + 500_000)]


def collude(view: View, occasion: Occasion) -> View | None:
    places = [place for place, one in enumerate(view) if one.message.common in occasion.variants]
    if not places:
        return None
    changed = replace(view[places[0]], message=occasion.variants[view[places[0]].message.common])
    return [*view[: places[0]], changed, *view[places[0] + 1 :]]


FALSIFIERS: Mapping[ServerLie, Falsifier] = {
    ServerLie.DROP: drop,
    ServerLie.FORK: drop,
    ServerLie.CHANGE_COMMON: change_one(change_common),
    ServerLie.CHANGE_CIPHERTEXT: change_one(change_ciphertext),
    ServerLie.SPLIT_RECIPIENTS: change_one(split_recipients),
    ServerLie.REORDER: reorder,
    ServerLie.CHANGE_SEQUENCE: change_sequence,
    ServerLie.TEAR_SERIES: tear_series,
    ServerLie.REPLAY: replay,
    ServerLie.COLLUDE: collude,
}

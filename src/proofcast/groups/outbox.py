"""What this device sends: drafts wait for keys, series wait for their place in the order and to come back.

The state of every session is stored before the ciphertext it made leaves, together with the series itself: after a
crash the same bytes are sent again, never others under a used key.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from struct import Struct

from proofcast.errors import InvalidRequest, Reason
from proofcast.groups.histories import Histories
from proofcast.groups.sealing import CommonPlaintext, Payload, Sort, compute_recipients_digest, seal_common
from proofcast.groups.series import (
    COMMON_BYTES_MAX,
    MESSAGES_MAX,
    RECIPIENTS_MAX,
    SALT_BYTES,
    Envelope,
    Message,
    Series,
    parse_series,
)
from proofcast.groups.session import Sessions
from proofcast.groups.wire import WireReader

Changes = dict[str, bytes | None]
TOLD = Struct(">32sII")
"""A recipient and the generations, ours and its own, that its payload named."""
OVERHEAD_BYTES = 142
"""Of a common ciphertext over its body."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One operation and who is to get it; the sender always does."""

    body: bytes
    recipients: tuple[bytes, ...]
    sort: Sort = Sort.OPERATION

    def encode(self) -> bytes:
        recipients = len(self.recipients).to_bytes(2, "big") + b"".join(self.recipients)
        return bytes([self.sort]) + recipients + len(self.body).to_bytes(4, "big") + self.body


def encode_drafts(drafts: tuple[Draft, ...]) -> bytes:
    return len(drafts).to_bytes(2, "big") + b"".join(draft.encode() for draft in drafts)


def parse_draft(reader: WireReader) -> Draft:
    sort = Sort(reader.number(1))
    recipients = tuple(reader.take(32) for _ in range(reader.number(2)))
    return Draft(reader.take(reader.number(4)), recipients, sort)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A series from when it is made until all of it has come back."""

    series: Series
    told: Mapping[bytes, tuple[int, int]]
    """Generations that its payloads named, by recipient."""
    first: int | None = None
    """Sequence of its first message, when the server has attested it."""
    returned: int = 0
    """How many of its messages came back."""

    def is_done(self) -> bool:
        return self.first is not None and self.returned == len(self.series.messages)

    def encode(self) -> bytes:
        told = b"".join([TOLD.pack(peer, own, other) for peer, (own, other) in self.told.items()])
        head = (self.first or 0).to_bytes(8, "big") + self.returned.to_bytes(2, "big")
        return head + len(self.told).to_bytes(4, "big") + told + self.series.encode()


def parse_outgoing(data: bytes) -> Outgoing:
    reader = WireReader(data, "a stored series")
    first, returned = reader.number(8) or None, reader.number(2)
    told = {reader.take(32): (reader.number(4), reader.number(4)) for _ in range(reader.number(4))}
    return Outgoing(parse_series(reader.take(len(data) - reader.at)), told, first, returned)


@dataclass(slots=True)
class Outbox:
    device: bytes
    sessions: Sessions
    histories: Histories
    draw: Callable[[int], bytes]
    """Randomness."""
    validate_every: int
    """Every how many messages a peer is told how our shared history stands."""
    counter: int = 0
    drafts: list[tuple[Draft, ...]] = field(default_factory=list)
    """In the order in which they were given; the first may wait for keys."""
    drafts_from: int = 0
    """Number of the first draft, for its name in the store."""
    stored_to: int = 0
    """Number of the first draft that is not in the store."""
    gone: list[int] = field(default_factory=list)
    outgoing: dict[int, Outgoing] = field(default_factory=dict)
    broken: set[bytes] = field(default_factory=set)
    """Peers whose session is to be made anew before the next message."""
    silent: dict[bytes, int] = field(default_factory=dict)
    """Messages to a peer since it was last told."""

    def add(self, drafts: tuple[Draft, ...]) -> None:
        completed = tuple(self.complete(draft) for draft in drafts)
        verify_drafts(completed)
        self.drafts.append(completed)

    def complete(self, draft: Draft) -> Draft:
        return Draft(draft.body, tuple(sorted({self.device, *draft.recipients})), draft.sort)

    def find_missing(self) -> tuple[bytes, ...]:
        """Devices whose keys the next series needs."""
        wanted = {one for draft in self.drafts[0] for one in draft.recipients} if self.drafts else set()
        return tuple(sorted(one for one in wanted if one in self.broken or not self.sessions.has(one)))

    def drop_next(self) -> tuple[Draft, ...]:
        dropped = self.drafts.pop(0)
        if self.drafts_from < self.stored_to:
            self.gone.append(self.drafts_from)
        self.drafts_from += 1
        self.stored_to = max(self.stored_to, self.drafts_from)
        return dropped

    def take_changes(self) -> Changes:
        """Drafts that still wait, and such as were stored and do not wait any more."""
        changes: Changes = {f"draft/{number}": None for number in self.gone}
        for number in range(self.stored_to, self.drafts_from + len(self.drafts)):
            changes[f"draft/{number}"] = encode_drafts(self.drafts[number - self.drafts_from])
        self.stored_to, self.gone = self.drafts_from + len(self.drafts), []
        return changes

    def seal_next(self) -> tuple[Outgoing, Changes]:
        """Make a series of the next drafts; its keys are there."""
        drafts = self.drafts[0]
        self.counter += 1
        told: dict[bytes, tuple[int, int]] = {}
        messages = tuple(self.seal(draft, index, len(drafts), told) for index, draft in enumerate(drafts))
        made = Outgoing(Series(self.device, self.counter, messages), told)
        self.outgoing[self.counter] = made
        self.drop_next()
        return made, {f"outgoing/{self.counter}": made.encode()}

    def seal(self, draft: Draft, index: int, count: int, told: dict[bytes, tuple[int, int]]) -> Message:
        key, salt = self.draw(32), self.draw(SALT_BYTES)
        recipients = compute_recipients_digest(draft.recipients)
        plain = CommonPlaintext(draft.sort, self.device, self.counter, index, count, recipients, draft.body)
        common = seal_common(plain, key, salt)
        envelopes = []
        for recipient in draft.recipients:
            payload = self.make_payload(recipient, key)
            told[recipient] = payload.generation, payload.peer_generation
            envelopes.append(Envelope(recipient, *self.sessions.encrypt(recipient, payload.encode())))
        return Message(self.device, common, tuple(envelopes))

    def make_payload(self, recipient: bytes, key: bytes) -> Payload:
        silent = self.silent.get(recipient, 0) + 1
        validates = silent >= self.validate_every
        self.silent[recipient] = 0 if validates else silent
        return self.histories.make_payload(recipient, key, validates=validates)

    def note_receipt(self, counter: int, first: int) -> Changes:
        return self.note(counter, replace(self.outgoing[counter], first=first))

    def note_return(self, counter: int) -> Changes:
        if counter not in self.outgoing:
            return {}
        known = self.outgoing[counter]
        return self.note(counter, replace(known, returned=known.returned + 1))

    def note(self, counter: int, outgoing: Outgoing) -> Changes:
        name = f"outgoing/{counter}"
        if outgoing.is_done():
            del self.outgoing[counter]
            return {name: None}
        self.outgoing[counter] = outgoing
        return {name: outgoing.encode()}

    def forget_all(self, counter: int) -> Changes:
        """After a restored backup: what was on its way belongs to a past this device does not know."""
        changes: Changes = {f"outgoing/{one}": None for one in self.outgoing}
        self.outgoing, self.broken, self.silent, self.counter = {}, set(), {}, counter
        return changes

    def load(self, name: str, value: bytes) -> None:
        kind, _, number = name.partition("/")
        if kind == "outgoing":
            self.outgoing[int(number)] = parse_outgoing(value)
            return
        reader = WireReader(value, "a stored draft")
        self.drafts.append(tuple(parse_draft(reader) for _ in range(reader.number(2))))
        self.stored_to = self.drafts_from + len(self.drafts)
        reader.finish()


def verify_drafts(drafts: tuple[Draft, ...]) -> None:
    if not 0 < len(drafts) <= MESSAGES_MAX:
        raise refuse_draft(f"a series of `{len(drafts)}` messages cannot be sent", f"send 1 to {MESSAGES_MAX} at once")
    for draft in drafts:
        if len(draft.recipients) > RECIPIENTS_MAX:
            raise refuse_draft(f"`{len(draft.recipients)}` recipients are too many", f"at most {RECIPIENTS_MAX}")
        if len(draft.body) + OVERHEAD_BYTES > COMMON_BYTES_MAX:
            raise refuse_draft(f"an operation of `{len(draft.body)}` bytes is too long", "send it in parts")
        if any(len(one) != 32 for one in draft.recipients):
            raise refuse_draft("a recipient is not a device id of `32` bytes", "see `proofcast device show`")


def refuse_draft(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)

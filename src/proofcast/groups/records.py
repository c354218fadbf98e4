"""The small records of a device: where it stands, what it holds back, what goes into a backup."""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct

from proofcast.groups import outputs
from proofcast.groups.histories import ENTRIES, PREFIX
from proofcast.groups.outbox import Draft, parse_draft
from proofcast.groups.wire import WireReader

Changes = dict[str, bytes | None]
"""Name to value; None forgets it."""
META = Struct(">QQQIBBQQd")
META_NAME = "client"
BACKUP_NAME = "backup"
NONE = 2**64 - 1
"""In the place of an end that is unknown after a restored backup."""


@dataclass(frozen=True, slots=True)
class Meta:
    counter: int
    acknowledged: int
    drafts_from: int
    generation: int
    is_restored: bool
    is_suspended: bool
    sent_end: int | None
    received_end: int | None
    fallback_at: float

    def encode(self) -> bytes:
        counters = self.counter, self.acknowledged, self.drafts_from, self.generation
        ends = (NONE if end is None else end for end in (self.sent_end, self.received_end))
        return META.pack(*counters, self.is_restored, self.is_suspended, *ends, self.fallback_at)


def parse_meta(data: bytes) -> Meta:
    counter, acknowledged, drafts_from, generation, restored, suspended, sent, received, fallback_at = META.unpack(data)
    counters = counter, acknowledged, drafts_from, generation
    sent_end, received_end = (None if end == NONE else end for end in (sent, received))
    return Meta(*counters, bool(restored), bool(suspended), sent_end, received_end, fallback_at)


def encode_changes(changes: Mapping[str, bytes | None]) -> bytes:
    """Any number of (u16 n | name in UTF-8 | 0 u8, or 1 u8 | u32 n | value)."""
    parts = []
    for name, value in changes.items():
        encoded = name.encode()
        parts += [len(encoded).to_bytes(2, "big"), encoded]
        parts += [b"\0"] if value is None else [b"\1", len(value).to_bytes(4, "big"), value]
    return b"".join(parts)


def parse_changes(data: bytes) -> Changes:
    reader, changes = WireReader(data, "a journal's entry"), Changes()
    while reader.at < len(data):
        name = reader.take(reader.number(2)).decode()
        changes[name] = reader.take(reader.number(4)) if reader.number(1) else None
    return changes


def encode_held(deliver: outputs.Deliver) -> bytes:
    return deliver.sender + Draft(deliver.operation, deliver.recipients).encode()


def make_backup(records: Mapping[str, bytes]) -> dict[str, bytes]:
    """What is worth keeping elsewhere: who we are to whom. Ratchets are left out: they must never be used twice."""
    kept = {name: value for name, value in records.items() if name == META_NAME or name.startswith((PREFIX, ENTRIES))}
    return kept | {BACKUP_NAME: b""}


def get_order(name: str) -> tuple[str, int]:
    """Drafts by their number; the rest as it comes."""
    kind, _, rest = name.partition("/")
    return kind, int(rest) if rest.isdecimal() else 0


def parse_held(sequence: int, data: bytes) -> outputs.Deliver:
    reader = WireReader(data, "a stored delivery")
    sender, draft = reader.take(32), parse_draft(reader)
    return outputs.Deliver(sequence, sender, draft.recipients, draft.body)

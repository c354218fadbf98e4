"""What the server keeps for its clients: packets until they are deleted, one-time keys until they are taken.

Both follow from the log alone. A packet is named by the sequence its range ends at; deleting is cumulative, and what is
not deleted is kept for ever, because the server has signed that it delivers it. So space is limited before a message
is accepted, never after.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile

from proofcast.groups.identity import BUNDLE_BYTES

ONE_TIME_KEYS_MAX = 100
"""Per device; a client publishes 50 and tops up when few are left."""
INBOX_BYTES_MAX = 64 << 20
"""Undeleted packets of one device; beyond it, messages to the device are refused until it deletes."""
FALLBACK_FLAG_AT = 64
"""Of a key bundle, which the directory does not look into otherwise."""


@dataclass(frozen=True, slots=True)
class Packet:
    end: int
    """One beyond the last sequence it speaks about."""
    data: bytes


@dataclass(slots=True)
class Inbox:
    packets: deque[Packet] = field(default_factory=deque)
    size_bytes: int = 0
    deleted: int = 0
    """Everything that ends here or before is gone."""

    def add(self, packet: Packet) -> None:
        if packet.end > self.deleted:
            self.packets.append(packet)
            self.size_bytes += len(packet.data)

    def delete(self, before: int) -> None:
        self.deleted = max(self.deleted, before)
        while self.packets and self.packets[0].end <= self.deleted:
            self.size_bytes -= len(self.packets.popleft().data)

    def read(self, after: int) -> list[Packet]:
        """The packets that end beyond `after`, oldest first; cheap where `after` is recent."""
        newest = takewhile(lambda packet: packet.end > after, reversed(self.packets))
        return list(newest)[::-1]

    @property
    def is_full(self) -> bool:
        return self.size_bytes > INBOX_BYTES_MAX


@dataclass(slots=True)
class Shelf:
    """The published keys of one device."""

    one_time: deque[bytes] = field(default_factory=deque)
    fallback: bytes | None = None


@dataclass(slots=True)
class Directory:
    """The key bundles of all devices. A device that has published keys is registered and can be written to."""

    shelves: dict[bytes, Shelf] = field(default_factory=dict)

    def __contains__(self, device: bytes) -> bool:
        return device in self.shelves

    def publish(self, device: bytes, bundles: bytes) -> None:
        shelf = self.shelves.setdefault(device, Shelf())
        for bundle in split_bundles(bundles):
            if bundle[FALLBACK_FLAG_AT]:
                shelf.fallback = bundle
            elif len(shelf.one_time) < ONE_TIME_KEYS_MAX:
                shelf.one_time.append(bundle)

    def claim(self, device: bytes) -> bytes | None:
        """Take a key: each one-time key goes to one claimer; the fallback key serves when there are none."""
        shelf = self.shelves.get(device)
        if shelf is None:
            return None
        return shelf.one_time.popleft() if shelf.one_time else shelf.fallback

    def count(self, device: bytes) -> int:
        """One-time keys left."""
        shelf = self.shelves.get(device)
        return len(shelf.one_time) if shelf else 0


def split_bundles(bundles: bytes) -> list[bytes]:
    return [bundles[at : at + BUNDLE_BYTES] for at in range(0, len(bundles), BUNDLE_BYTES)]

"""What the protocols of one peer share: its name, its table, its timers and its outbox."""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from proofcast.overlay.identity import Contact, Signer, Verify
from proofcast.overlay.kademlia import Table
from proofcast.overlay.messages import Message
from proofcast.overlay.outputs import Output, Send
from proofcast.overlay.records import Advert, Digest, Interest
from proofcast.overlay.settings import Settings

Action = Callable[[float], None]
Signed = TypeVar("Signed", Interest, Advert, Digest)


class Timers:
    """Actions in order of their time, and of their making where times are equal."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._count = 0

    def set(self, when: float, action: Action) -> None:
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, action))

    def get_deadline(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def run(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2](now)


@dataclass(slots=True)
class Seat:
    contact: Contact
    signer: Signer
    verify: Verify
    settings: Settings
    table: Table
    joined: float
    """When the peer entered the network."""
    is_joining: bool = False
    """Until its neighbours are found, a peer is the closest only of the few it knows, and no rendezvous yet."""
    timers: Timers = field(default_factory=Timers)
    outbox: list[Output] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """What happened how often, for `status` and for tests; the names are those of `peer.py`."""

    @property
    def position(self) -> int:
        return self.contact.position

    def send(self, to: Contact, message: Message) -> None:
        self.outbox.append(Send(to, message))

    def sign(self, record: Signed) -> Signed:
        return replace(record, signature=self.signer.sign(record.encode_claim()))

    def is_closer(self, contact: Contact, key: int) -> bool:
        """Is the contact nearer to the key than this peer?"""
        return contact.position ^ key < self.position ^ key

    def is_rendezvous(self, key: int) -> bool:
        return self.table.find_next_hop(key) is None and not self.is_joining

    def find_heirs(self, key: int) -> list[Contact]:
        """The known peers nearest to a key: they take over when its rendezvous vanishes."""
        return self.table.find_closest(key, self.settings.backups)


def get_ms(now: float) -> int:
    return int(now * 1000)

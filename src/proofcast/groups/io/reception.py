"""What the doors need from whoever stands behind them: a shard of a server, or one that lies for demonstration."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from proofcast.groups.frame import EntryKind
from proofcast.groups.inbox import Packet
from proofcast.groups.io.serverkey import ServerKey
from proofcast.groups.notice import Notice


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the server knows of a device."""

    registered: bool
    counter: int
    """Of the last series it accepted."""
    attested: int
    """Of the last one it attested."""
    keys: int
    """One-time keys left."""
    inbox_bytes: int
    deleted: int
    """Sequence before which the device has had its inbox deleted."""


class Reception(Protocol):
    @property
    def key(self) -> ServerKey: ...

    @property
    def urls(self) -> list[str]:
        """Of all shards."""
        ...

    @property
    def notice(self) -> Notice: ...

    def describe(self, device: bytes) -> DeviceFacts: ...

    async def ask(self, kind: EntryKind, device: bytes, body: bytes) -> bytes | None:
        """Have one request put into the log, and answer when it is durable."""
        ...

    def send_series(self, device: bytes, batch: bytes) -> asyncio.Future[int]:
        """Have a list of series ordered; the future is done, with the last counter, when all of them are attested."""
        ...

    def read(self, device: bytes, after: int) -> list[Packet]: ...

    def listen(self, device: bytes) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever something comes for the device."""
        ...


class Arrivals:
    """The connections that wait for something to come for their device."""

    def __init__(self) -> None:
        self.waiting: dict[bytes, set[asyncio.Event]] = {}

    @contextmanager
    def listen(self, device: bytes) -> Iterator[asyncio.Event]:
        arrival = asyncio.Event()
        listening = self.waiting.setdefault(device, set())
        listening.add(arrival)
        try:
            yield arrival
        finally:
            listening.discard(arrival)
            if not listening:
                self.waiting.pop(device, None)

    def wake(self, device: bytes) -> None:
        for arrival in self.waiting.get(device, ()):
            arrival.set()

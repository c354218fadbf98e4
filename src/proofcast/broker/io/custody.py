"""Which subscriptions this broker pushes for: it takes what nobody holds, renews what it has, drops what changed.

Several brokers may look at one database. Each subscription is held by one of them under a lease; when that one dies,
another takes over when the lease has run out, and repeats what was not acknowledged.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Protocol

from proofcast.broker.io.deliveries import LOOKS_PER_LEASE, Deliveries
from proofcast.broker.io.store.subscriptions import Holding
from proofcast.broker.subscription import Subscription, Terms, Transport
from proofcast.errors import InvalidRequest, ProofcastError, Reason

LOG = logging.getLogger(__name__)


class Carrier(Protocol):
    """A transport that pushes."""

    def verify_terms(self, terms: Terms) -> None:
        """Raise where the transport cannot carry by these terms."""

    async def run(self, holding: Holding) -> None:
        """Deliver until cancelled."""

    async def ping(self, subscription: Subscription) -> str:
        """Send something that is no event, to see whether it arrives; what came back."""


class Custody:
    def __init__(self, deliveries: Deliveries, carriers: Mapping[Transport, Carrier]) -> None:
        self.carriers = carriers
        self._deliveries, self._store = deliveries, deliveries.store
        self._running: dict[str, tuple[Holding, asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()

    def notice(self) -> None:
        """Something was created or changed here: look at once."""
        self._changed.set()

    def find_carrier(self, transport: Transport) -> Carrier | None:
        return self.carriers.get(transport)

    def get_carrier(self, subscription: Subscription) -> Carrier:
        found = self.carriers.get(subscription.terms.transport)
        if found is None:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"`{subscription.name}` is fetched by `{subscription.terms.transport}`, nothing is sent to it",
                hint="read it at `GET /api/v1/subscriptions/{name}/events` or `/stream`",
            )
        return found

    async def run(self) -> None:
        """Look after subscriptions until cancelled; then let go of them, so that another broker can go on at once."""
        try:
            while True:
                self._changed.clear()
                try:
                    await self._look()
                except ProofcastError as error:
                    LOG.warning("subscriptions are not looked after: %s", error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._store.lease_s / LOOKS_PER_LEASE):
                        await self._changed.wait()
        finally:
            await self._stop(list(self._running))

    async def _look(self) -> None:
        kept = await self._deliveries.renew([holding for holding, _ in self._running.values()])
        await self._stop(
            name
            for name, (holding, task) in list(self._running.items())
            if task.done() or kept.get(name) != holding.subscription.generation
        )
        for name in await self._store.find_free(tuple(self.carriers)):
            if name not in self._running:
                await self._start(name)

    async def _start(self, name: str) -> None:
        try:
            holding = await self._deliveries.hold(name)
        except ProofcastError as error:
            LOG.info("`%s` is left alone: %s", name, error)
            return
        carrier = self.carriers[holding.subscription.terms.transport]
        self._running[name] = holding, asyncio.create_task(self._carry(carrier, holding))

    async def _carry(self, carrier: Carrier, holding: Holding) -> None:
        try:
            await carrier.run(holding)
        except ProofcastError as error:
            LOG.warning("deliveries for `%s` stopped, they will be tried again: %s", holding.name, error)

    async def _stop(self, names: Iterable[str]) -> None:
        ended = [self._running.pop(name) for name in names]
        for _, task in ended:
            task.cancel()
        faults = await asyncio.gather(*(task for _, task in ended), return_exceptions=True)
        for (holding, _), fault in zip(ended, faults, strict=True):
            if isinstance(fault, Exception):
                LOG.error("deliveries for `%s` ended by a fault of the broker", holding.name, exc_info=fault)
            with suppress(ProofcastError):
                await self._deliveries.release(holding)

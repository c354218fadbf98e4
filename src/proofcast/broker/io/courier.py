"""Deliveries for one subscription to a receiver that may fail: taken from the store, sent, and what came of it."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from proofcast.broker import measures
from proofcast.broker.delivery import Acknowledge, Bury, Failure, Outcome, Postpone, Window
from proofcast.broker.io.deliveries import Deliveries
from proofcast.broker.io.metrics import Metrics
from proofcast.broker.io.store import letters, offers
from proofcast.broker.io.store.database import Transaction
from proofcast.broker.io.store.letters import Attempt
from proofcast.broker.io.store.subscriptions import Holding
from proofcast.broker.measures import Transport
from proofcast.broker.subscription import Pending
from proofcast.errors import Reason, Unavailable

MEASURED: Mapping[type[Outcome], measures.Outcome] = {
    Acknowledge: measures.Outcome.ACKNOWLEDGED,
    Postpone: measures.Outcome.FAILED,
    Bury: measures.Outcome.DEAD,
}
UNSETTLED_MAX = 4_096
"""Outcomes not yet on disk, above which nothing more is sent."""
TOGETHER_S = 0.01
"""For which outcomes wait for others to share their commit, which costs as much as sending several; what a crash takes
of them is sent again, and marked."""
FILL_MAX = 256
"""Deliveries taken from the store at a time."""

Send = Callable[[Pending], Awaitable[Failure | None]]
"""None where the receiver took it."""


class Courier:
    """Delivers for one subscription: fills its window, sends what may be sent, writes down what came of it."""

    def __init__(
        self, deliveries: Deliveries, holding: Holding, send: Send, metrics: Metrics, ladder_s: Sequence[float]
    ) -> None:
        self._deliveries, self._holding, self._post, self._metrics = deliveries, holding, send, metrics
        self._window = Window(holding.subscription.failing_since, ladder_s)
        self._settled: list[tuple[Outcome, Attempt]] = []
        self._stirred, self._has_settled, self._has_room = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._fill())
                group.create_task(self._write_down())
                group.create_task(self._send_all(group))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _fill(self) -> None:
        last = -1
        while True:
            while self._window.room < FILL_MAX:
                self._has_room.clear()
                await self._has_room.wait()
            found = await self._deliveries.read(self._holding, FILL_MAX, after=last)
            for pending in found:
                self._window.offer(pending)
                last = pending.ordinal
            self._stirred.set()
            if not found:
                await self._deliveries.wait(self._holding)

    async def _send_all(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._stirred.clear()
            self._deliveries.verify_held(self._holding)
            if len(self._settled) < UNSETTLED_MAX:
                for pending in self._window.start(time.time()):
                    group.create_task(self._send(pending))
            deadline = self._window.deadline()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.time())):
                    await self._stirred.wait()

    async def _send(self, pending: Pending) -> None:
        failure = await self._post(pending)
        now = time.time()
        outcome = self._window.settle(pending.ordinal, failure, now, random.random())
        self._metrics.count(Transport.WEBHOOK, MEASURED[type(outcome)], 1)
        detail = failure.detail if failure else "taken"
        name = type(outcome).__name__.lower()
        self._settled.append((outcome, Attempt(pending.ordinal, pending.attempts, pending.event_id, name, detail, now)))
        for event in (self._stirred, self._has_settled, self._has_room):
            event.set()

    async def _write_down(self) -> None:
        store, name = self._deliveries.store, self._holding.name
        while True:
            await self._has_settled.wait()
            await asyncio.sleep(TOGETHER_S)
            self._has_settled.clear()
            settled, self._settled = self._settled, []
            await store.run(partial(write_outcomes, holding=self._holding, settled=settled))
            self._stirred.set()
            if self._window.is_hopeless(time.time()):
                reason = "the receiver is gone, or has taken nothing for days"
                await store.disable(name, reason)
                raise Unavailable(Reason.NO_ANSWER, f"`{name}` is disabled: {reason}", hint="resume it when it works")


def write_outcomes(at: Transaction, holding: Holding, settled: Iterable[tuple[Outcome, Attempt]]) -> None:
    taken = []
    attempts = []
    for outcome, attempt in settled:
        attempts.append(attempt)
        if isinstance(outcome, Acknowledge):
            taken.append(outcome.ordinal)
        elif isinstance(outcome, Postpone):
            letters.postpone(at, holding, outcome.ordinal, outcome.attempts, outcome.due_at)
        elif isinstance(outcome, Bury):
            letters.bury(at, holding, outcome.ordinal, outcome.reason)
    if taken:
        offers.acknowledge(at, holding, taken)
    letters.record(at, holding.name, attempts)

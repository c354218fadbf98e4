"""One subscription's deliveries to a receiver that may fail: what is sent now, what waits, what is given up.

Deliveries enter in the order in which they were offered. Those with the same order key are sent one after the other, so
that a receiver sees them in the ledger's order; a failing one holds its key back and nothing else. It is tried again
after each pause of a ladder, jittered, and given up at its end: then its key goes on. A receiver that has taken nothing
for `DISABLED_AFTER_S` is not bothered any more until its owner resumes the subscription.

`offer(pending)` takes deliveries in, `start(now)` says what to send, `settle(ordinal, failure, now, entropy)` takes the
outcome and says what to write down, `deadline()` when to call `start` again.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from proofcast.broker.subscription import Pending

LADDER_S = (5.0, 30.0, 120.0, 600.0, 3_600.0, 7_200.0, 21_600.0, 43_200.0, 86_400.0)
"""Pauses between attempts, as receivers of Standard Webhooks expect: two days in all."""
JITTER = 0.2
"""Of each pause, up or down, so that what failed together does not come back together."""
DISABLED_AFTER_S = 5 * 86_400.0
"""Failing without a single success: longer than one delivery's ladder, and a long weekend."""
IN_FLIGHT_MAX = 64
"""Requests to one receiver at a time."""
WINDOW_MAX = 1_024
"""Deliveries kept in memory for one receiver, sent or waiting."""


@dataclass(frozen=True, slots=True)
class Failure:
    detail: str
    is_final: bool = False
    """It would fail the same way for ever."""
    is_gone: bool = False
    """The receiver wants nothing any more."""
    retry_after_s: float = 0.0
    """The receiver asked for at least so long a pause."""


@dataclass(frozen=True, slots=True)
class Acknowledge:
    ordinal: int


@dataclass(frozen=True, slots=True)
class Postpone:
    ordinal: int
    attempts: int
    due_at: float


@dataclass(frozen=True, slots=True)
class Bury:
    ordinal: int
    reason: str


Outcome = Acknowledge | Postpone | Bury


class Window:
    """`entropy` is a number from 0 to 1, drawn by whoever calls."""

    def __init__(
        self,
        failing_since: float | None = None,
        ladder_s: Sequence[float] = LADDER_S,
        in_flight_max: int = IN_FLIGHT_MAX,
        window_max: int = WINDOW_MAX,
    ) -> None:
        self._failing_since = failing_since
        self._is_gone = False
        self._ladder_s = ladder_s
        self._in_flight_max, self._window_max = in_flight_max, window_max
        self._queues: dict[str, deque[Pending]] = {}
        """Per order key; the first of each is the one to send."""
        self._ready: deque[str] = deque()
        """Keys whose first delivery has not been sent yet."""
        self._waiting: dict[str, float] = {}
        """Keys whose first delivery failed, and when it is due again."""
        self._in_flight: dict[int, Pending] = {}
        self._count = 0

    @property
    def room(self) -> int:
        """How many deliveries may be taken in."""
        return self._window_max - self._count

    def offer(self, pending: Pending) -> None:
        queue = self._queues.setdefault(pending.order_key, deque())
        queue.append(pending)
        self._count += 1
        if len(queue) == 1:
            self._enqueue(pending)

    def start(self, now: float) -> list[Pending]:
        """What to send now; each must be settled."""
        for key in [key for key, due_at in self._waiting.items() if due_at <= now]:
            del self._waiting[key]
            self._ready.append(key)
        chosen = []
        while self._ready and len(self._in_flight) < self._in_flight_max:
            pending = self._queues[self._ready.popleft()][0]
            self._in_flight[pending.ordinal] = pending
            chosen.append(pending)
        return chosen

    def settle(self, ordinal: int, failure: Failure | None, now: float, entropy: float) -> Outcome:
        pending = self._in_flight.pop(ordinal)
        if failure is None:
            self._failing_since = None
            self._leave(pending)
            return Acknowledge(ordinal)
        self._failing_since = self._failing_since or now
        self._is_gone = self._is_gone or failure.is_gone
        if failure.is_final or pending.attempts >= len(self._ladder_s):
            self._leave(pending)
            return Bury(ordinal, failure.detail)
        pause_s = self._ladder_s[pending.attempts] * (1 - JITTER + 2 * JITTER * entropy)
        due_at = now + max(failure.retry_after_s, pause_s)
        again = pending._replace(attempts=pending.attempts + 1, due_at=due_at, is_repeated=True)
        self._queues[pending.order_key][0] = again
        self._waiting[pending.order_key] = due_at
        return Postpone(ordinal, pending.attempts + 1, due_at)

    def deadline(self) -> float | None:
        """When something that failed is due again."""
        return min(self._waiting.values(), default=None)

    def is_hopeless(self, now: float) -> bool:
        """Has the receiver taken nothing for so long that it should be left alone?"""
        return self._is_gone or (self._failing_since is not None and now - self._failing_since > DISABLED_AFTER_S)

    def _leave(self, pending: Pending) -> None:
        queue = self._queues[pending.order_key]
        queue.popleft()
        self._count -= 1
        if queue:
            self._enqueue(queue[0])
        else:
            del self._queues[pending.order_key]

    def _enqueue(self, pending: Pending) -> None:
        if pending.due_at:
            self._waiting[pending.order_key] = pending.due_at
        else:
            self._ready.append(pending.order_key)

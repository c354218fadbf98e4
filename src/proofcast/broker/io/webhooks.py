"""Webhooks: deliveries posted to a receiver, signed by Standard Webhooks, until it takes them."""

import asyncio
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import orjson

from proofcast.broker import measures
from proofcast.broker.delivery import LADDER_S, Acknowledge, Bury, Failure, Outcome, Postpone, Window
from proofcast.broker.edge import compute_traceparent
from proofcast.broker.io.deliveries import Deliveries
from proofcast.broker.io.guard import Guard
from proofcast.broker.io.metrics import Metrics
from proofcast.broker.io.posting import Address, Poster, parse_address
from proofcast.broker.io.store import letters
from proofcast.broker.io.store.database import Transaction
from proofcast.broker.io.store.letters import Attempt
from proofcast.broker.io.store.subscriptions import Holding
from proofcast.broker.measures import Transport
from proofcast.broker.subscription import Pending, Subscription, Terms
from proofcast.cloudevents import CONTENT_TYPE, encode_binary, parse_structured
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.webhook import sign

MEASURED: Mapping[type[Outcome], measures.Outcome] = {
    Acknowledge: measures.Outcome.ACKNOWLEDGED,
    Postpone: measures.Outcome.FAILED,
    Bury: measures.Outcome.DEAD,
}
TIMEOUT_S = 15.0
"""A receiver answers first and works afterwards; Standard Webhooks asks for 15 seconds at least."""
BODY_BYTES_MAX = 256 * 1024
"""Of one request: what receivers commonly take."""
FAULT_LENGTH_MAX = 200
"""Characters kept of what went wrong."""
RETRY_AFTER_S_MAX = 86_400.0
UNSETTLED_MAX = 4_096
"""Outcomes not yet on disk, above which nothing more is sent."""
FILL_MAX = 256
"""Deliveries taken from the store at a time."""
MODES = ("structured", "binary")
GONE = 410
"""The receiver wants nothing any more, as Standard Webhooks says it."""


@dataclass(frozen=True, slots=True)
class Target:
    address: Address
    mode: str
    keys: tuple[str, ...]

    def encode(self, pending: Pending) -> tuple[dict[str, str], bytes]:
        """Headers and body."""
        body = pending.encode()
        if self.mode == "structured":
            return {"content-type": CONTENT_TYPE}, body
        return encode_binary(parse_structured(body))


class Webhooks:
    """The carrier; one client for all receivers."""

    def __init__(
        self, deliveries: Deliveries, guard: Guard, metrics: Metrics, ladder_s: Sequence[float] = LADDER_S
    ) -> None:
        self.ladder_s, self.metrics = ladder_s, metrics
        self._deliveries, self._guard = deliveries, guard
        self._poster = Poster(guard)

    async def close(self) -> None:
        self._poster.close()

    def verify_terms(self, terms: Terms) -> None:
        self.build_target(terms)

    def build_target(self, terms: Terms) -> Target:
        mode = terms.options.get("mode", "structured")
        unknown = terms.options.keys() - {"url", "mode"}
        if mode not in MODES or unknown:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"`{ascii(min(unknown, default=mode))[1:-1][:64]}` is nothing a webhook knows",
                hint=f"options are `url` and `mode`, which is one of {', '.join(MODES)}",
            )
        self._guard.verify_url(terms.options.get("url", ""))
        if not terms.secrets:
            raise InvalidRequest(Reason.BAD_KEY, "the webhook has no key", hint="give `secrets`, newest first")
        sign(terms.secrets, "id", 0, b"")  # a key of the wrong form is refused
        return Target(parse_address(terms.options["url"]), mode, terms.secrets)

    async def run(self, holding: Holding) -> None:
        await Courier(self, self._deliveries, holding).run()

    async def ping(self, subscription: Subscription) -> str:
        target = self.build_target(subscription.terms)
        now = int(time.time())
        body = orjson.dumps(
            {
                "specversion": "1.0",
                "id": f"ping/{random.getrandbits(64):016x}",
                "source": "proofcast",
                "type": "org.proofcast.ping",
                "data": {"subscription": subscription.name, "at": now},
            }
        )
        failure = await self.post(target, f"ping-{now}", {"content-type": CONTENT_TYPE}, body)
        return failure.detail if failure else "taken"

    async def send(self, target: Target, pending: Pending) -> Failure | None:
        headers, body = target.encode(pending)
        headers["traceparent"] = compute_traceparent(pending.event_id, pending.attempts + 1)
        if len(body) > BODY_BYTES_MAX:
            return Failure(f"{len(body)} bytes are more than {BODY_BYTES_MAX}", is_final=True)
        return await self.post(target, pending.event_id, headers, body)

    async def post(self, target: Target, message_id: str, headers: dict[str, str], body: bytes) -> Failure | None:
        """None where the receiver took it."""
        headers |= sign(target.keys, message_id, int(time.time()), body).headers
        try:
            answer = await self._poster.post(target.address, headers, body, TIMEOUT_S)
        except TimeoutError:
            return Failure("no answer in time")
        except (OSError, InvalidRequest) as error:
            return Failure(str(error)[:FAULT_LENGTH_MAX])
        return judge(answer.status, answer.retry_after)


class Courier:
    """Delivers for one subscription: fills its window, sends what may be sent, writes down what came of it."""

    def __init__(self, webhooks: Webhooks, deliveries: Deliveries, holding: Holding) -> None:
        self._webhooks, self._deliveries, self._holding = webhooks, deliveries, holding
        self._target = webhooks.build_target(holding.subscription.terms)
        self._window = Window(holding.subscription.failing_since, webhooks.ladder_s)
        self._settled: list[tuple[Outcome, Attempt]] = []
        self._stirred, self._has_settled, self._has_room = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._fill())
                group.create_task(self._write_down())
                group.create_task(self._send_all(group))
        except BaseExceptionGroup as errors:
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
            if len(self._settled) < UNSETTLED_MAX:
                for pending in self._window.start(time.time()):
                    group.create_task(self._send(pending))
            deadline = self._window.deadline()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.time())):
                    await self._stirred.wait()

    async def _send(self, pending: Pending) -> None:
        failure = await self._webhooks.send(self._target, pending)
        now = time.time()
        outcome = self._window.settle(pending.ordinal, failure, now, random.random())
        self._webhooks.metrics.count(Transport.WEBHOOK, MEASURED[type(outcome)], 1)
        detail = failure.detail if failure else "taken"
        name = type(outcome).__name__.lower()
        self._settled.append((outcome, Attempt(pending.ordinal, pending.attempts, pending.event_id, name, detail, now)))
        for event in (self._stirred, self._has_settled, self._has_room):
            event.set()

    async def _write_down(self) -> None:
        store, name = self._deliveries.store, self._holding.name
        while True:
            await self._has_settled.wait()
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
        letters.acknowledge(at, holding, taken)
    letters.record(at, holding.name, attempts)


def judge(status: int, retry_after: str) -> Failure | None:
    if 200 <= status < 300:
        return None
    pause = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
    what = "a redirection, which is not followed" if 300 <= status < 400 else "no success"
    retry_after_s = min(pause, RETRY_AFTER_S_MAX)
    return Failure(f"the receiver answered {status}: {what}", is_gone=status == GONE, retry_after_s=retry_after_s)

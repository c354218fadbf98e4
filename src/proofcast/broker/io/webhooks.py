"""Webhooks: deliveries posted to a receiver, signed by Standard Webhooks, until it takes them."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import orjson

from proofcast.broker.delivery import LADDER_S, Failure
from proofcast.broker.edge import compute_traceparent
from proofcast.broker.io.courier import Courier
from proofcast.broker.io.deliveries import Deliveries
from proofcast.broker.io.guard import Guard
from proofcast.broker.io.metrics import Metrics
from proofcast.broker.io.posting import Address, Poster, parse_address
from proofcast.broker.io.store.subscriptions import Holding
from proofcast.broker.subscription import Pending, Subscription, Terms
from proofcast.cloudevents import CONTENT_TYPE, encode_binary, parse_structured
from proofcast.errors import InvalidRequest, Reason
from proofcast.webhook import sign

TIMEOUT_S = 15.0
"""A receiver answers first and works afterwards; Standard Webhooks asks for 15 seconds at least."""
BODY_BYTES_MAX = 256 * 1024
"""Of one request: what receivers commonly take."""
FAULT_LENGTH_MAX = 200
"""Characters kept of what went wrong."""
RETRY_AFTER_S_MAX = 86_400.0
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
        self._ladder_s, self._metrics = ladder_s, metrics
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
        send = partial(self.send, self.build_target(holding.subscription.terms))
        await Courier(self._deliveries, holding, send, self._metrics, self._ladder_s).run()

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


def judge(status: int, retry_after: str) -> Failure | None:
    if 200 <= status < 300:
        return None
    pause = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
    what = "a redirection, which is not followed" if 300 <= status < 400 else "no success"
    retry_after_s = min(pause, RETRY_AFTER_S_MAX)
    return Failure(f"the receiver answered {status}: {what}", is_gone=status == GONE, retry_after_s=retry_after_s)

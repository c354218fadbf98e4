"""The SDK over HTTP: `for event in Client(url).subscribe("flights", start="oldest"): ...`

Several brokers may be named; when one fails the next is asked, with the cursor that the first one gave. Brokers are
asked again and again, with growing random pauses, until the reader stops reading or the newest verified block is older
than the reader allows.
"""

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

import httpx
import orjson

from proofcast.client.following import Following
from proofcast.client.sse import EventParser, ServerEvent
from proofcast.cloudevents import parse_structured
from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.event import Event, Finality

STREAM = "/api/v1/events/stream"
SILENCE_S_MAX = 60.0
"""Heartbeats come every 15 seconds: after four that did not come the connection is dead."""
PAUSE_S, PAUSE_S_MAX = 0.2, 15.0


class Client:
    def __init__(self, urls: str | Sequence[str], *, key: str = "") -> None:
        self._urls = [urls] if isinstance(urls, str) else list(urls)
        if not self._urls:
            raise InvalidRequest(Reason.BAD_ARGUMENT, "no broker is named", hint="give at least one address")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(timeout=httpx.Timeout(SILENCE_S_MAX, connect=5.0), headers=headers, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def get_evidence(self, event_id: str) -> bytes:
        """What a stranger needs to check one event; from the first broker that has it."""
        problem: InvalidRequest | Unavailable | None = None
        for url in self._urls:
            try:
                response = self._http.get(f"{url}/api/v1/events/{event_id}/evidence")
            except httpx.HTTPError as error:
                what = f"the broker at `{url}` did not answer (`{type(error).__name__}`)"
                problem = Unavailable(Reason.NO_ANSWER, what, hint="check its address")
                continue
            if response.status_code == httpx.codes.OK:
                return response.content
            problem = read_problem(response)
        assert problem is not None
        raise problem

    def subscribe(
        self,
        topic: str = "",
        *,
        start: str = "newest",
        finality: Finality | str = Finality.LATEST,
        publisher: str = "",
        contract: str = "",
        silent_s_max: float | None = None,
    ) -> "Subscription":
        """Events of a topic, by id or by name with `*` and `?`; `start` as a broker takes it, a cursor included."""
        wanted = {"topic": topic, "publisher": publisher, "contract": contract, "finality": str(finality)}
        query = {name: value for name, value in wanted.items() if value}
        return Subscription(self._http, self._urls, query, start, silent_s_max)


class Subscription:
    """Iterate over it; `cursor` is what the reader holds once the loop's body has ended."""

    def __init__(
        self,
        http: httpx.Client,
        urls: Sequence[str],
        query: Mapping[str, str],
        start: str,
        silent_s_max: float | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._http, self._urls, self._query, self._start = http, urls, query, start
        self._following = Following()
        self._now, self._silent_s_max = now, silent_s_max
        self._heard_s = now()
        """When a broker last said something."""

    @property
    def cursor(self) -> str:
        return self._following.cursor

    def __iter__(self) -> Iterator[Event]:
        pauses = 0
        for url in itertools.cycle(self._urls):
            heard_s = self._heard_s
            try:
                yield from self._read(url)
            except (httpx.HTTPError, Unavailable):
                pauses = 0 if self._heard_s > heard_s else pauses + 1
            self._check_silence()
            if pauses >= len(self._urls):
                time.sleep(min(PAUSE_S_MAX, PAUSE_S * 2 ** (pauses - len(self._urls))) * random.uniform(0.5, 1))

    def _read(self, url: str) -> Iterator[Event]:
        """Everything that one connection gives."""
        parser = EventParser()
        query = {**self._query, "start": self._following.resumption or self._start}
        with self._http.stream("GET", url + STREAM, params=query) as response:
            if response.status_code != httpx.codes.OK:
                raise read_problem(response)
            for data in response.iter_raw():
                for found in parser.receive(data):
                    self._heard_s = self._now()
                    yield from self._take(found)

    def _take(self, found: ServerEvent) -> Iterator[Event]:
        if found.name in ("apply", "undo"):
            yield from self._following.receive(parse_structured(found.data))
        elif found.name == "rewind":
            self._following.rewind(read_number(found.data), found.id)
        elif found.name == "heartbeat":
            yield from self._following.settle_doubts()

    def _check_silence(self) -> None:
        silent_s = self._now() - self._heard_s
        if self._silent_s_max is not None and silent_s > self._silent_s_max:
            raise Unavailable(
                Reason.NO_ANSWER,
                f"no broker has said anything for `{silent_s:.0f}` seconds, allowed are `{self._silent_s_max:.0f}`",
                hint="check the brokers; go on later from `cursor`, nothing is lost",
            )


def read_number(data: bytes) -> int:
    try:
        return int(orjson.loads(data)["number"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            Reason.MALFORMED, f"the broker names no block in `{data[:80]!a}`", hint="use another broker"
        ) from error


def read_problem(response: httpx.Response) -> InvalidRequest | Unavailable:
    """A refusal in the broker's own words; what may pass is `Unavailable`."""
    response.read()
    try:
        problem = orjson.loads(response.content)
        message, hint = str(problem["title"]), str(problem["hint"])
    except (ValueError, KeyError, TypeError):
        message, hint = f"the broker answered with HTTP `{response.status_code}`", "check its address"
    if (
        response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
        or response.status_code == httpx.codes.TOO_MANY_REQUESTS
    ):
        return Unavailable(Reason.NO_ANSWER, message, hint=hint)
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)

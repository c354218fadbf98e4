"""The SDK over HTTP: `for event in Client(url).subscribe("flights", start="oldest"): ...`, or with `async for`.

Every event is verified here: a broker is a convenience, not an authority. Several may be named; when one fails the next
is asked, with the cursor that the first one gave. They are asked again and again, with growing random pauses, until the
reader stops reading or the newest verified block is older than it allows.
"""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

import httpx
import orjson

from proofcast.client.checking import Checker, Wanted
from proofcast.client.following import Following
from proofcast.client.lineage import Lineage
from proofcast.client.reading import Reader
from proofcast.client.rounds import Rounds
from proofcast.client.values import ADDRESS_LENGTH, HASH_LENGTH, TOPIC_LENGTH, is_hex, parse_hex
from proofcast.cloudevents import Delivery
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.event import Event, Finality
from proofcast.feed.subject import Kind, split_subject
from proofcast.onchain.io.artefacts import get_contracts, get_exchanges

STREAM, SUBSCRIPTIONS = "/api/v1/events/stream", "/api/v1/subscriptions"
SILENCE_S_MAX = 60.0
"""Heartbeats come every 15 seconds: after four that did not come the connection is dead."""
TIMEOUT = httpx.Timeout(SILENCE_S_MAX, connect=5.0)
STARTS = re.compile(r"oldest$|newest$|block:|sequence:|time:")
"""Whatever else a subscription starts from is a cursor."""
PASSING = (httpx.HTTPError, Unavailable)
"""What another broker, or the same one later, may not suffer from."""


class Client:
    def __init__(self, urls: str | Sequence[str], *, key: str = "", topics: str = "") -> None:
        """`topics` is the address of the contract `Topics`, where it is not at its usual one."""
        self.urls = [urls] if isinstance(urls, str) else list(urls)
        if not self.urls:
            raise InvalidRequest(Reason.BAD_ARGUMENT, "no broker is named", hint="give at least one address")
        self._topics = parse_hex("topics", topics, ADDRESS_LENGTH)
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.http = httpx.Client(timeout=TIMEOUT, headers=self.headers, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    def get_evidence(self, event_id: str, trust: str = "") -> bytes:
        """What a stranger needs to check one event, with the headers to a block he trusts; from whoever has it."""
        return self.ask("GET", f"/api/v1/events/{event_id}/evidence", query={"trust": trust} if trust else {}).content

    def ask(
        self, method: str, path: str, *, query: dict[str, str] | None = None, body: object | None = None
    ) -> httpx.Response:
        """The answer of the first broker that gives a good one."""
        problem: InvalidRequest | Unavailable | None = None
        content = None if body is None else orjson.dumps(body)
        for url in self.urls:
            try:
                response = self.http.request(method, url + path, params=query, content=content)
            except httpx.HTTPError as error:
                what = f"the broker at `{url}` did not answer (`{type(error).__name__}`)"
                problem = Unavailable(Reason.NO_ANSWER, what, hint="check its address")
                continue
            if response.is_success:
                return response
            problem = read_refusal(response)
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
        where: str = "",
        key: str = "",
        verify: bool = True,
        trust: str = "",
        age_s_max: float | None = None,
        name: str = "",
    ) -> "Subscription":
        """Events of a topic, by id or by name with `*` and `?`; `start` as a broker takes it, a cursor included.

        `exchange/NAME` are the messages of an exchange, `queue/NAME` those that reached a queue. `key` is a routing key
        with wildcards: messages come that a queue could get which is bound by a key that it means.

        `where` is a predicate over the fields of the payload, e.g. `delay R 30 *`; it is the broker that reads it.

        `trust` is the hash of a block that you trust; without one, the first header that comes is trusted. With
        `verify=False` the broker is. `age_s_max` is how old the newest block may be before `Unavailable` is raised.

        With a `name` the broker remembers what was acknowledged, under that name: a subscription that is there goes on,
        and what was not acknowledged comes again, marked. Without one, `cursor` is yours to keep.
        """
        wanted = {"topic": topic, "key": key, "publisher": publisher, "contract": contract, "where": where}
        query = {name: value for name, value in wanted.items() if value} | {"finality": str(finality)}
        checker = self._build_checker(query, trust) if verify else None
        if name:
            self._ensure(name, query, start)
        following = Following(is_resumed=not STARTS.match(start))
        return Subscription(self, Reader(query, start, checker, following, is_durable=bool(name)), age_s_max, name)

    def _ensure(self, name: str, query: dict[str, str], start: str) -> None:
        """Make the subscription, unless it is there."""
        try:
            self.ask("GET", f"{SUBSCRIPTIONS}/{name}")
        except InvalidRequest as error:
            if error.have != httpx.codes.NOT_FOUND:
                raise
            chosen = {field: value for field, value in query.items() if field != "finality"}
            body = {"name": name, "filter": chosen, "finality": query["finality"], "start": start}
            self.ask("POST", SUBSCRIPTIONS, body=body)

    def _build_checker(self, query: dict[str, str], trust: str) -> Checker:
        contract = parse_hex("contract", query.get("contract", ""), ADDRESS_LENGTH)
        topics = self._topics or get_contracts().topics
        kind, named = split_subject(query.get("topic", ""))
        subject = parse_hex(kind, named, TOPIC_LENGTH) if is_hex(named) else b""
        is_message, is_queue = kind is not Kind.TOPIC, kind is Kind.QUEUE
        wanted = Wanted(
            contract or (b"" if is_message else topics),
            b"" if contract or (named and not is_message) else get_exchanges(topics),
            topic=b"" if is_queue else subject,
            queue=subject if is_queue else b"",
            key=query.get("key", ""),
            publisher=parse_hex("publisher", query.get("publisher", ""), ADDRESS_LENGTH),
            is_raw=bool(contract),
            has_gaps=is_queue or "where" in query or "key" in query,
        )
        return Checker(wanted, Lineage(parse_hex("trust", trust, HASH_LENGTH)))


class Subscription:
    """Iterate over it; `cursor` is what the reader holds once the loop's body has ended."""

    def __init__(self, client: Client, reader: Reader, age_s_max: float | None, name: str = "") -> None:
        self._client, self._reader, self._age_s_max, self._name = client, reader, age_s_max, name
        self._path = f"{SUBSCRIPTIONS}/{name}/stream" if name else STREAM
        self._rounds = Rounds(client.urls)

    @property
    def cursor(self) -> str:
        return self._reader.following.cursor

    @property
    def delivery(self) -> Delivery:
        """The event at hand as it was delivered, with its cursor and turn."""
        assert self._reader.delivery is not None, "nothing was delivered yet"
        return self._reader.delivery

    def acknowledge(self) -> None:
        """What came is dealt with, up to the event at hand; on the broker's disk when this returns."""
        assert self._name, "only a subscription with a name is acknowledged"
        self._client.ask("POST", f"{SUBSCRIPTIONS}/{self._name}/ack", body={"cursor": self.delivery.cursor})

    def __iter__(self) -> Iterator[Event]:
        return self._read(lambda: False)

    def read_history(self) -> Iterator[Event]:
        """Everything there is by now; ends where waiting would begin."""
        return self._read(lambda: self._reader.is_current)

    def _read(self, is_enough: Callable[[], bool]) -> Iterator[Event]:
        while not is_enough():
            url, pause_s = self._rounds.choose(random.random())
            time.sleep(pause_s)
            try:
                with self._client.http.stream("GET", url + self._path, params=self._reader.build_query()) as response:
                    if response.status_code != httpx.codes.OK:
                        response.read()
                        raise read_refusal(response)
                    for data in response.iter_raw():
                        yield from self._receive(data)
                        if is_enough():
                            break
            except PASSING as error:
                self._pass(error)

    async def __aiter__(self) -> AsyncIterator[Event]:
        async with httpx.AsyncClient(timeout=TIMEOUT, headers=self._client.headers, trust_env=False) as http:
            while True:
                url, pause_s = self._rounds.choose(random.random())
                await asyncio.sleep(pause_s)
                try:
                    async with http.stream("GET", url + self._path, params=self._reader.build_query()) as response:
                        if response.status_code != httpx.codes.OK:
                            await response.aread()
                            raise read_refusal(response)
                        async for data in response.aiter_raw():
                            for event in self._receive(data):
                                yield event
                except PASSING as error:
                    self._pass(error)

    def _receive(self, data: bytes) -> Iterator[Event]:
        for event in self._reader.receive(data):
            self._rounds.succeed()
            yield event
        if self._reader.is_current:
            self._rounds.succeed()
        self._reader.verify_age(time.time(), self._age_s_max if self._reader.newest_timestamp else None)

    def _pass(self, error: httpx.HTTPError | Unavailable) -> None:
        """Go on with the next broker, unless none can serve this, or the newest block has become too old meanwhile."""
        if isinstance(error, Unavailable) and error.reason is Reason.NOT_YET and self._rounds.is_hopeless:
            raise error
        try:
            self._reader.verify_age(time.time(), self._age_s_max)
        except Unavailable as stale:
            raise stale from error


def read_refusal(response: httpx.Response) -> InvalidRequest | Unavailable:
    """In the broker's own words; what may pass is `Unavailable`."""
    try:
        problem = orjson.loads(response.content)
        message, hint = str(problem["title"]), str(problem["hint"])
    except (ValueError, KeyError, TypeError):
        message, hint = f"the broker answered with HTTP `{response.status_code}`", "check its address"
    if response.is_server_error or response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        return Unavailable(Reason.NO_ANSWER, message, hint=hint)
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint, have=response.status_code)

"""One subscription from its reader's side, without a socket: bytes of any broker's stream in, events out.

A driver connects with `build_query`, hands over what it reads and yields what comes of it. When a connection ends it
connects again, anywhere: the query says what is held and which headers are known.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import orjson

from proofcast.client.checking import Checker
from proofcast.client.following import Following
from proofcast.client.sse import EventParser, ServerEvent
from proofcast.cloudevents import Delivery, parse_structured
from proofcast.errors import InvalidInput, Reason, Unavailable
from proofcast.event import Event, Step


@dataclass(slots=True)
class Reader:
    query: Mapping[str, str]
    """What is subscribed to."""
    start: str
    checker: Checker | None
    """None where the broker is believed."""
    following: Following = field(default_factory=Following)
    is_durable: bool = False
    """Does the broker remember what was acknowledged? Then it begins each connection there, repeating the rest."""
    delivery: Delivery | None = None
    """The last that was applied or undone: what the reader is at work with."""
    newest_timestamp: int = 0
    """Of the newest block, in seconds since 1970: verified, or else as the broker says."""
    is_current: bool = False
    """Has everything come that there was when this connection began?"""
    _heartbeats: int = 0
    """On this connection: the first says that it stands, the second that history has ended."""
    _parser: EventParser = field(default_factory=EventParser)

    def build_query(self) -> dict[str, str]:
        """For a new connection; what was left of the last one is forgotten."""
        self._parser, self._heartbeats, self.is_current = EventParser(), 0, False
        query = {} if self.is_durable else {**self.query, "start": self.following.resumption or self.start}
        if self.is_durable:
            self.following = Following(is_resumed=True)
        if self.checker is None:
            return query
        if self.is_durable:
            self.checker.forget_sequences()
        linked = ",".join(f"0x{block_hash.hex()}" for block_hash in self.checker.lineage.list_locators())
        return query | {"evidence": "1"} | ({"linked": linked} if linked else {})

    def receive(self, data: bytes) -> Iterator[Event]:
        for found in self._parser.receive(data):
            yield from self._take(found)

    def verify_age(self, now: float, age_s_max: float | None) -> None:
        """Silence is not absence: say so when the newest block is too old."""
        age_s = now - self.newest_timestamp
        if age_s_max is None or age_s <= age_s_max:
            return
        newest = f"is `{age_s:.0f}` seconds old" if self.newest_timestamp else "has not been told by any broker"
        raise Unavailable(
            Reason.NO_ANSWER,
            f"the newest block {newest}, allowed are `{age_s_max:.0f}` seconds",
            hint="check the brokers and the chain; go on later from `cursor`, nothing is lost",
        )

    def _take(self, found: ServerEvent) -> Iterator[Event]:
        if found.name in ("apply", "undo"):
            yield from self._take_delivery(parse_structured(found.data))
        elif found.name == "heartbeat":
            yield from self._follow(self.following.settle_doubts())
            self._note_newest(found.data)
            self._heartbeats += 1
            self.is_current = self._heartbeats > 1
        elif found.name == "rewind":
            self.following.rewind(read_block(found.data)[0], found.id)
        elif found.name == "problem":
            raise read_problem(found.data)
        elif self.checker and found.name == "headers":
            self.checker.lineage.receive(decode(found.data))
        elif self.checker and found.name == "evidence":
            self.checker.receive_evidence(decode(found.data))

    def _take_delivery(self, delivery: Delivery) -> Iterator[Event]:
        if self.checker and delivery.event.step is Step.APPLY:
            delivery = replace(delivery, event=self.checker.check(delivery.event))
        yield from self._follow(self.following.receive(delivery))

    def _follow(self, deliveries: Iterator[Delivery]) -> Iterator[Event]:
        for delivery in deliveries:
            if self.checker:
                self.checker.follow_sequence(delivery.event)
            self.delivery = delivery
            yield delivery.event

    def _note_newest(self, data: bytes) -> None:
        _, timestamp = read_block(data)
        verified = self.checker.lineage.newest_timestamp if self.checker else timestamp
        self.newest_timestamp = max(self.newest_timestamp, verified)


def decode(data: bytes) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise refuse(data) from error


def read_block(data: bytes) -> tuple[int, int]:
    """Number and time, the latter 0 where it is not told."""
    try:
        found = orjson.loads(data)
        return int(found["number"]), int(found.get("time", 0))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise refuse(data) from error


def read_problem(data: bytes) -> Unavailable:
    """Why a stream ends; another broker may go on."""
    try:
        found = orjson.loads(data)
        return Unavailable(Reason.NOT_YET, str(found["title"]), hint=str(found["hint"]))
    except (ValueError, KeyError, TypeError) as error:
        raise refuse(data) from error


def refuse(data: bytes) -> InvalidInput:
    return InvalidInput(
        Reason.MALFORMED, f"a broker's stream has `{data[:80]!a}` in it", hint="check that the address is a broker's"
    )

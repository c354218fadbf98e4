"""A broker's events into the overlay: read and verified by the client, written down, handed to a local peer.

One thread reads into the outbox, the other empties it: reading must not wait for the overlay's acknowledgement of each
event, nor may it run far ahead.
"""

import base64
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import orjson

from proofcast.chain.evidence import parse_evidence
from proofcast.client.checking import Checker, Wanted
from proofcast.client.following import Following
from proofcast.client.io.http import Client, Subscription
from proofcast.client.lineage import TRUSTED
from proofcast.client.reading import Reader
from proofcast.cloudevents import compute_id, encode_structured
from proofcast.errors import ProofcastError
from proofcast.gateway.envelope import HEADERS_MAX, describe_event, fit_envelope
from proofcast.gateway.io.outbox import CarryingStore, Waiting
from proofcast.gateway.trail import Trail
from proofcast.overlay.io.control import ask
from proofcast.overlay.io.options import SOCKET_NAME
from proofcast.routing.attributes import Json

WAITING_MAX = 1_000
"""Events read ahead of the overlay."""
AT_ONCE = 16
"""Handed to the peer side by side: each waits for its rendezvous."""
PAUSE_S = 0.05
FILE_NAME = "gateway/outbox.sqlite"
"""In the peer's folder."""


@dataclass(frozen=True, slots=True)
class Carriage:
    """What to carry, whence and by which peer."""

    state: Path
    """The peer's folder."""
    topic: str
    word: str
    """By which the overlay routes the events."""
    wanted: Wanted
    start: str
    finality: str
    trust: bytes


@dataclass(slots=True)
class Progress:
    """Between the two threads."""

    failure: BaseException | None = None
    ended: threading.Event = field(default_factory=threading.Event)


def carry(client: Client, carriage: Carriage, note: Callable[[str], None]) -> Iterator[str]:
    """Run for as long as somebody asks; gives the overlay's id of each event that it has accepted."""
    progress = Progress()
    reading = threading.Thread(target=read_into, args=(client, carriage, progress, note), daemon=True)
    reading.start()
    store = open_store(carriage)
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while True:
                is_reading, waiting = reading.is_alive(), store.read(AT_ONCE)
                if not waiting and not is_reading:
                    raise progress.failure or AssertionError("reading ended by a fault of ours, told above")
                handed = pool.map(partial(hand_over, carriage, store.session), waiting)
                for one, event_id in zip(waiting, handed, strict=True):
                    if event_id:
                        store.remove(one.sequence)
                        yield event_id
                if not waiting:
                    progress.ended.wait(PAUSE_S)
    finally:
        progress.ended.set()
        store.close()


def hand_over(carriage: Carriage, session: int, waiting: Waiting) -> str:
    """The event's id in the overlay; empty where not every rendezvous has accepted it yet."""
    place = {"session": str(session), "sequence": waiting.sequence, "born_ms": waiting.born_ms}
    payload = base64.b64encode(waiting.payload).decode()
    request = {"do": "publish", "attributes": waiting.attributes, "payload": payload, "place": place}
    answer = ask(carriage.state / SOCKET_NAME, request)
    return str(answer["event"]) if answer["accepted"] else ""


def open_store(carriage: Carriage) -> CarryingStore:
    return CarryingStore(carriage.state / FILE_NAME, f"{carriage.topic or '*'} at {carriage.finality}")


def read_into(client: Client, carriage: Carriage, progress: Progress, note: Callable[[str], None]) -> None:
    try:
        store = open_store(carriage)
        trail = Trail(carriage.trust)
        subscription = subscribe(client, carriage, trail, store.get_cursor())
        for _ in subscription:
            payload = build_payload(client, carriage, trail, subscription)
            if payload is None:
                note(f"event `{compute_id(subscription.delivery.event, 1)}` is too large for the overlay: passed over")
                store.pass_over(subscription.delivery.cursor)
            else:
                store.add(subscription.delivery.cursor, describe(carriage, subscription), payload)
            while store.count() >= WAITING_MAX and not progress.ended.wait(PAUSE_S):
                pass
            if progress.ended.is_set():
                return
    except (ProofcastError, OSError) as error:
        progress.failure = error


def subscribe(client: Client, carriage: Carriage, trail: Trail, cursor: str) -> Subscription:
    """As `Client.subscribe` does, with a lineage that keeps its headers."""
    query = {"finality": carriage.finality} | ({"topic": carriage.topic} if carriage.topic else {})
    following = Following(is_resumed=bool(cursor))
    reader = Reader(query, cursor or carriage.start, Checker(carriage.wanted, trail), following)
    return Subscription(client, reader, None)


def build_payload(client: Client, carriage: Carriage, trail: Trail, subscription: Subscription) -> bytes | None:
    """The envelope of the event at hand; None where it is too large."""
    delivery = subscription.delivery
    block_hash = delivery.event.position.block_hash
    event_id = compute_id(delivery.event, delivery.turn)
    evidence = client.get_evidence(event_id)
    rest = parse_evidence(evidence).headers
    if delivery.event.trust == TRUSTED and block_hash != carriage.trust:
        rest = parse_evidence(client.get_evidence(event_id, f"0x{carriage.trust.hex()}")).headers
    before = trail.get_before(block_hash)
    if len(before) + len(rest) > HEADERS_MAX:
        rest = rest[:1]
    return fit_envelope(encode_structured(delivery), evidence, before, rest)


def describe(carriage: Carriage, subscription: Subscription) -> str:
    event = subscription.delivery.event
    fields: Json = None
    with suppress(ValueError):
        fields = orjson.loads(event.payload)
    return str(describe_event([carriage.word], event, fields))

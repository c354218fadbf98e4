"""From a verified log to an event: what our contracts published, and the raw logs of any other.

A message of an exchange is an event whose topic is the exchange and whose key is the routing key. Broker and client
both do this, each for itself: a client believes no event that it cannot make from the log.
"""

from collections.abc import Iterable
from functools import lru_cache

from proofcast.errors import ProofcastError
from proofcast.ethereum.receipt import Log
from proofcast.event import Event, Finality, Position, Step
from proofcast.onchain.events import TopicsEvent, find_event
from proofcast.onchain.exchange_events import (
    ExchangeEvent,
    Handed,
    Held,
    compute_exchange_type_hash,
    find_exchange_event,
)
from proofcast.onchain.published import Published, find_published
from proofcast.onchain.routed import ROUTED, Routed, find_routed

NO_TOPIC = bytes(32)
"""Of an anonymous log."""
NO_KEY = bytes(32)
"""How the contract writes that an event has no key."""
ARRIVING = frozenset({compute_exchange_type_hash(Held), compute_exchange_type_hash(Handed)})
"""First topics of what a queue says of a message that reached it."""


def read_log(log: Log, topics_address: bytes) -> TopicsEvent | None:
    """What our contract says by this log; None for a log of another contract, or of a newer version of ours."""
    if log.address != topics_address:
        return None
    try:
        return find_published(log.topics, log.data) or find_event(log.topics, log.data)
    except ProofcastError:
        return None


def read_exchange_log(log: Log, exchanges_address: bytes) -> ExchangeEvent | None:
    """What `Exchanges` says by this log; None for a log of another contract."""
    if log.address != exchanges_address:
        return None
    try:
        return find_exchange_event(log.topics, log.data)
    except ProofcastError:
        return None


def read_message(log: Log, exchanges_address: bytes) -> Routed | None:
    """The message of an exchange that this log publishes, if any."""
    if log.address != exchanges_address or log.topics[:1] != (ROUTED,):
        return None
    found = find_routed(log.topics, log.data) or read_exchange_log(log, exchanges_address)
    return found if isinstance(found, Routed) else None


def find_queues(logs: Iterable[Log], exchanges_address: bytes, exchange: bytes, sequence: int) -> frozenset[bytes]:
    """The queues that a message reached, by the logs of the transaction that published it."""
    arrivals = (read_arrival(log, exchanges_address) for log in logs)
    return frozenset(found[0] for found in arrivals if found and found[1:] == (exchange, sequence))


def read_arrival(log: Log, exchanges_address: bytes) -> tuple[bytes, bytes, int] | None:
    """Queue, exchange and number of the message that a queue got, where the log says so."""
    found = read_exchange_log(log, exchanges_address) if log.topics and log.topics[0] in ARRIVING else None
    if isinstance(found, Held):
        return found.queue, found.header.exchange, found.header.sequence
    return (found.queue, found.exchange, found.sequence) if isinstance(found, Handed) else None


def build_event(
    found: TopicsEvent | Routed | None,
    log: Log,
    position: Position,
    timestamp: int,
    trust: str,
    finality: Finality,
    step: Step,
) -> Event | None:
    """None for what our contract says about anything but a publication: nobody subscribes to that."""
    source = format_source(position.chain_id, log.address)
    if isinstance(found, Published):
        key = b"" if found.key == NO_KEY else found.key
        fields = (found.topic, found.sequence, key, found.publisher, found.payload)
    elif isinstance(found, Routed):
        fields = (found.exchange, found.sequence, found.key, found.publisher, found.payload)
    elif found is None:
        fields = (log.topics[0] if log.topics else NO_TOPIC, 0, b"".join(log.topics[1:]), b"", log.data)
    else:
        return None
    return Event(source, *fields, timestamp, position, trust, finality, step)


@lru_cache(maxsize=1024)
def format_source(chain_id: int, address: bytes) -> str:
    return f"eip155:{chain_id}:0x{address.hex()}"

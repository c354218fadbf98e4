"""From a verified log to an event: what our contract published, and the raw logs of any other.

Broker and client both do this, each for itself: a client believes no event that it cannot make from the log.
"""

from functools import lru_cache

from proofcast.errors import ProofcastError
from proofcast.ethereum.receipt import Log
from proofcast.event import Event, Finality, Position, Step
from proofcast.onchain.events import TopicsEvent, find_event
from proofcast.onchain.published import Published, find_published

NO_TOPIC = bytes(32)
"""Of an anonymous log."""
NO_KEY = bytes(32)
"""How the contract writes that an event has no key."""


def read_log(log: Log, topics_address: bytes) -> TopicsEvent | None:
    """What our contract says by this log; None for a log of another contract, or of a newer version of ours."""
    if log.address != topics_address:
        return None
    try:
        return find_published(log.topics, log.data) or find_event(log.topics, log.data)
    except ProofcastError:
        return None


def build_event(
    found: TopicsEvent | None,
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
    elif found is None:
        fields = (log.topics[0] if log.topics else NO_TOPIC, 0, b"".join(log.topics[1:]), b"", log.data)
    else:
        return None
    return Event(source, *fields, timestamp, position, trust, finality, step)


@lru_cache(maxsize=1024)
def format_source(chain_id: int, address: bytes) -> str:
    return f"eip155:{chain_id}:0x{address.hex()}"

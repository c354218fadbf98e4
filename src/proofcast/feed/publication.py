"""From a verified log to an event: what our contract published, and the raw logs of any other.

Broker and client both do this, each for itself: a client believes no event that it cannot make from the log.
"""

from functools import lru_cache

from proofcast.errors import ProofcastError
from proofcast.ethereum.receipt import Log
from proofcast.event import Event, Finality, Position, Step
from proofcast.onchain.events import Published, TopicsEvent, compute_type_hash, find_event

NO_TOPIC = bytes(32)
"""Of an anonymous log."""
NO_KEY = bytes(32)
"""How the contract writes that an event has no key."""
PUBLISHED = compute_type_hash(Published)
WORD = 32
PAYLOAD_AT = 3 * WORD
"""Behind the publisher, the payload's place and its length."""
NO_BYTES = bytes(12)
"""Before an address in its word."""
PAYLOAD_PLACE = (2 * WORD).to_bytes(WORD)


def read_log(log: Log, topics_address: bytes) -> TopicsEvent | None:
    """What our contract says by this log; None for a log of another contract, or of a newer version of ours."""
    if log.address != topics_address:
        return None
    try:
        return find_published(log) or find_event(log.topics, log.data)
    except ProofcastError:
        return None


def find_published(log: Log) -> Published | None:
    """A publication in the one form in which the contract writes it; `find_event` reads any form, ten times slower."""
    topics, data = log.topics, log.data
    if len(topics) != 4 or topics[0] != PUBLISHED or data[WORD : 2 * WORD] != PAYLOAD_PLACE:
        return None
    end = PAYLOAD_AT + int.from_bytes(data[2 * WORD : PAYLOAD_AT])
    filling = -end % WORD
    if len(data) != end + filling or not data.startswith(NO_BYTES) or data[end:] != bytes(filling):
        return None
    return Published(topics[1], int.from_bytes(topics[2]), topics[3], data[12:WORD], data[PAYLOAD_AT:end])


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

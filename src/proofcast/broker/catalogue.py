"""From verified logs to events: what our contract published, and the raw logs of any other."""

from dataclasses import dataclass, field

from proofcast.chain.trust import Trust
from proofcast.errors import ProofcastError
from proofcast.ethereum.receipt import Log
from proofcast.event import Event, Finality, Position, Step
from proofcast.onchain.events import Published, TopicCreated, TopicsEvent, find_event

NO_TOPIC = bytes(32)
"""Of an anonymous log."""
NO_KEY = bytes(32)
"""How the contract writes that an event has no key."""


@dataclass(slots=True)
class Catalogue:
    """Names of the topics seen so far. A name never changes, so an undone creation may stay: its id is unused then."""

    topics_address: bytes
    names: dict[bytes, str] = field(default_factory=dict)

    def read(self, log: Log) -> TopicsEvent | None:
        """What our contract says by this log; None for a log of another contract."""
        if log.address != self.topics_address:
            return None
        try:
            found = find_event(log.topics, log.data)
        except ProofcastError:
            return None  # then it is delivered raw: a newer version of the contract may know more than we do
        if isinstance(found, TopicCreated):
            self.names[found.topic] = found.name
        return found


def build_event(
    catalogue: Catalogue, log: Log, position: Position, timestamp: int, trust: Trust, finality: Finality, step: Step
) -> Event | None:
    """None for what our contract says about anything but a publication: nobody subscribes to that."""
    found = catalogue.read(log)
    source = f"eip155:{position.chain_id}:0x{log.address.hex()}"
    if isinstance(found, Published):
        fields = (
            found.topic,
            found.sequence,
            b"" if found.key == NO_KEY else found.key,
            found.publisher,
            found.payload,
        )
    elif found is None:
        fields = (log.topics[0] if log.topics else NO_TOPIC, 0, b"".join(log.topics[1:]), b"", log.data)
    else:
        return None
    return Event(source, *fields, timestamp, position, str(trust), finality, step)

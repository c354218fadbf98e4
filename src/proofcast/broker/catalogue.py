"""The topics seen so far, by name."""

from dataclasses import dataclass, field

from proofcast.chain.trust import Trust
from proofcast.ethereum.receipt import Log
from proofcast.event import Event, Finality, Position, Step
from proofcast.feed import publication
from proofcast.onchain.events import TopicCreated, TopicsEvent


@dataclass(slots=True)
class Catalogue:
    """Names of the topics seen so far. A name never changes, so an undone creation may stay: its id is unused then."""

    topics_address: bytes
    names: dict[bytes, str] = field(default_factory=dict)

    def read(self, log: Log) -> TopicsEvent | None:
        """What our contract says by this log; None for a log of another contract."""
        found = publication.read_log(log, self.topics_address)
        if isinstance(found, TopicCreated):
            self.names[found.topic] = found.name
        return found


def build_event(
    catalogue: Catalogue, log: Log, position: Position, timestamp: int, trust: Trust, finality: Finality, step: Step
) -> Event | None:
    """None for what our contract says about anything but a publication."""
    return publication.build_event(catalogue.read(log), log, position, timestamp, trust.value, finality, step)

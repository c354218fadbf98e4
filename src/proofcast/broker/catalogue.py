"""What our contract said about its topics: their names, and how their payloads are read."""

from dataclasses import dataclass, field
from typing import cast

from proofcast.errors import ProofcastError
from proofcast.ethereum.abi import Value, format_value
from proofcast.ethereum.receipt import Log
from proofcast.event import Event
from proofcast.feed import publication
from proofcast.onchain.events import PayloadTypeChanged, TopicCreated, TopicsEvent
from proofcast.onchain.payload import PayloadField, decode_fields, parse_payload_type
from proofcast.routing.attributes import EventAttributes, read_fields


@dataclass(slots=True)
class Catalogue:
    """Topics seen so far. A name never changes, so an undone creation may stay: its id is unused then.

    A payload is read by the type that its topic's owner declared last, whenever it was published.
    """

    topics_address: bytes
    names: dict[bytes, str] = field(default_factory=dict)
    payload_types: dict[bytes, tuple[PayloadField, ...]] = field(default_factory=dict)

    def read(self, log: Log) -> TopicsEvent | None:
        """What our contract says by this log; None for a log of another contract."""
        found = publication.read_log(log, self.topics_address)
        if isinstance(found, TopicCreated):
            self.names[found.topic] = found.name
        elif isinstance(found, PayloadTypeChanged):
            self.payload_types[found.topic] = read_type(found.payload_type)
        return found

    def get_attributes(self, event: Event) -> EventAttributes:
        """As a predicate sees the event: the topic's name is a topic word, the payload's fields are attributes."""
        fields = self.payload_types.get(event.topic, ())
        try:
            values = decode_fields(fields, event.payload)
        except ProofcastError:
            values = {}  # the publisher was free to write something else
        texts = {name: format_value(cast("Value", value)) for name, value in values.items()}
        return read_fields(filter(None, [self.names.get(event.topic, "")]), texts)


def read_type(text: str) -> tuple[PayloadField, ...]:
    """The fields; none where the owner declared nothing that has some."""
    try:
        return parse_payload_type(text)
    except ProofcastError:
        return ()

"""What our contracts said about topics, exchanges and queues: their names, and how payloads are read."""

from dataclasses import dataclass, field
from typing import cast

from proofcast.errors import ProofcastError
from proofcast.ethereum.abi import Value, format_value
from proofcast.ethereum.receipt import Log
from proofcast.event import Event
from proofcast.feed import publication
from proofcast.onchain.events import PayloadTypeChanged, TopicCreated, TopicsEvent
from proofcast.onchain.exchange_events import ExchangeCreated, QueueCreated, compute_exchange_type_hash
from proofcast.onchain.payload import PayloadField, decode_fields, parse_payload_type
from proofcast.routing.attributes import EventAttributes, read_fields

CREATED = frozenset((compute_exchange_type_hash(created),) for created in (ExchangeCreated, QueueCreated))


@dataclass(slots=True)
class Catalogue:
    """Topics seen so far. A name never changes, so an undone creation may stay: its id is unused then.

    A payload is read by the type that its topic's owner declared last, whenever it was published.
    """

    topics_address: bytes
    exchanges_address: bytes = b""
    """Empty where there are none."""
    exchanges: dict[bytes, str] = field(default_factory=dict)
    """Names of exchanges, and of queues below; their ids are taken apart from those of topics."""
    queues: dict[bytes, str] = field(default_factory=dict)
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

    def read_exchange(self, log: Log) -> None:
        """Learn names from what `Exchanges` says by this log."""
        if log.topics[:1] not in CREATED:
            return
        found = publication.read_exchange_log(log, self.exchanges_address)
        if isinstance(found, ExchangeCreated):
            self.exchanges[found.exchange] = found.name
        elif isinstance(found, QueueCreated):
            self.queues[found.queue] = found.name

    def is_message(self, event: Event) -> bool:
        """Was it published to an exchange?"""
        return bool(self.exchanges_address) and event.source.endswith(self.exchanges_address.hex())

    def get_name(self, event: Event) -> str:
        """Of its topic or exchange; empty where that is not known."""
        return (self.exchanges if self.is_message(event) else self.names).get(event.topic, "")

    def get_attributes(self, event: Event) -> EventAttributes:
        """As a predicate sees it: the name of topic or exchange is a topic word, the payload's fields attributes."""
        fields = () if self.is_message(event) else self.payload_types.get(event.topic, ())
        try:
            values = decode_fields(fields, event.payload)
        except ProofcastError:
            values = {}  # the publisher was free to write something else
        texts = {name: format_value(cast("Value", value)) for name, value in values.items()}
        return read_fields(filter(None, [self.get_name(event)]), texts)


def read_type(text: str) -> tuple[PayloadField, ...]:
    """The fields; none where the owner declared nothing that has some."""
    try:
        return parse_payload_type(text)
    except ProofcastError:
        return ()

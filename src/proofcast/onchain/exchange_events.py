"""Every log of the contract `Exchanges`, as a typed event."""

from collections.abc import Sequence
from dataclasses import dataclass

from proofcast.onchain.abi import build_from
from proofcast.onchain.exchanges import Status
from proofcast.onchain.log_types import LogType, index_log_types, log_type, parse_logged
from proofcast.onchain.outcome import Outcome, parse_outcomes
from proofcast.onchain.queues import HEADER_TYPE, TERMS_TYPE, Header, QueueTerms, build_terms
from proofcast.onchain.routed import Routed as Routed


@dataclass(frozen=True, slots=True)
class ExchangeCreated:
    exchange: bytes
    open: bool
    hash_may_be_nothing: bool
    fee_wei: int
    name: str


@dataclass(frozen=True, slots=True)
class QueueCreated:
    queue: bytes
    terms: QueueTerms
    name: str


@dataclass(frozen=True, slots=True)
class PublisherChanged:
    exchange: bytes
    publisher: bytes
    status: Status


@dataclass(frozen=True, slots=True)
class BindingChanged:
    exchange: bytes
    queue: bytes
    status: Status
    key: str


@dataclass(frozen=True, slots=True)
class SubscriberChanged:
    queue: bytes
    subscriber: bytes
    status: Status


@dataclass(frozen=True, slots=True)
class Held:
    queue: bytes
    number: int
    header: Header


@dataclass(frozen=True, slots=True)
class Handed:
    """One page of a message's deliveries."""

    queue: bytes
    number: int
    exchange: bytes
    sequence: int
    first: int
    remaining: int
    outcomes: tuple[Outcome, ...]
    """One per place, from `first` on."""


@dataclass(frozen=True, slots=True)
class Overflowed:
    queue: bytes
    exchange: bytes
    sequence: int


@dataclass(frozen=True, slots=True)
class Expired:
    queue: bytes
    number: int
    dead_letter: bytes


@dataclass(frozen=True, slots=True)
class Returned:
    publisher: bytes
    exchange: bytes
    sequence: int
    value_wei: int


@dataclass(frozen=True, slots=True)
class QueueFunded:
    queue: bytes
    amount_wei: int


@dataclass(frozen=True, slots=True)
class PaidOut:
    account: bytes
    to: bytes
    amount_wei: int


ExchangeEvent = (
    ExchangeCreated
    | QueueCreated
    | PublisherChanged
    | BindingChanged
    | SubscriberChanged
    | Routed
    | Held
    | Handed
    | Overflowed
    | Expired
    | Returned
    | QueueFunded
    | PaidOut
)


def build_queue_created(queue: bytes, terms: tuple[object, ...], name: str) -> ExchangeEvent:
    return QueueCreated(queue, build_terms(terms), name)


def build_publisher_changed(exchange: bytes, publisher: bytes, status: int) -> ExchangeEvent:
    return PublisherChanged(exchange, publisher, Status(status))


def build_binding_changed(exchange: bytes, queue: bytes, status: int, key: str) -> ExchangeEvent:
    return BindingChanged(exchange, queue, Status(status), key)


def build_subscriber_changed(queue: bytes, subscriber: bytes, status: int) -> ExchangeEvent:
    return SubscriberChanged(queue, subscriber, Status(status))


def build_held(queue: bytes, number: int, header: tuple[object, ...]) -> ExchangeEvent:
    return Held(queue, number, build_from(Header, header))


def build_handed(
    queue: bytes, number: int, exchange: bytes, sequence: int, first: int, remaining: int, outcomes: bytes
) -> ExchangeEvent:
    return Handed(queue, number, exchange, sequence, first, remaining, parse_outcomes(outcomes))


EXCHANGE_LOG_TYPES: tuple[LogType[ExchangeEvent], ...] = (
    log_type("ExchangeCreated", "(bytes32)", "(bool,bool,uint256,string)", ExchangeCreated),
    log_type("QueueCreated", "(bytes32)", f"({TERMS_TYPE},string)", build_queue_created),
    log_type("PublisherChanged", "(bytes32,address)", "(uint8)", build_publisher_changed),
    log_type("BindingChanged", "(bytes32,bytes32)", "(uint8,string)", build_binding_changed),
    log_type("SubscriberChanged", "(bytes32,address)", "(uint8)", build_subscriber_changed),
    log_type("Routed", "(bytes32,uint256,address)", "(uint256,uint256,bytes,bytes)", Routed),
    log_type("Held", "(bytes32,uint256)", f"({HEADER_TYPE})", build_held),
    log_type("Handed", "(bytes32,uint256,bytes32)", "(uint256,uint256,uint256,bytes)", build_handed),
    log_type("Overflowed", "(bytes32,bytes32)", "(uint256)", Overflowed),
    log_type("Expired", "(bytes32,uint256)", "(bytes32)", Expired),
    log_type("Returned", "(address,bytes32)", "(uint256,uint256)", Returned),
    log_type("QueueFunded", "(bytes32)", "(uint256)", QueueFunded),
    log_type("PaidOut", "(address)", "(address,uint256)", PaidOut),
)

EXCHANGE_TYPE_BY_HASH = index_log_types(EXCHANGE_LOG_TYPES)
EXCHANGE_HASH_BY_NAME = {known.name: type_hash for type_hash, known in EXCHANGE_TYPE_BY_HASH.items()}


def find_exchange_event(topics: Sequence[bytes], data: bytes) -> ExchangeEvent | None:
    """The event behind a log of `Exchanges`; None where it is none."""
    return parse_logged(EXCHANGE_TYPE_BY_HASH, topics, data)


def compute_exchange_type_hash(event: type[object]) -> bytes:
    """The first topic of every log of this type."""
    return EXCHANGE_HASH_BY_NAME[event.__name__]

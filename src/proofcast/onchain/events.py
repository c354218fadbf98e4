"""Every log of the contracts, as a typed event."""

from collections.abc import Sequence
from dataclasses import dataclass

from proofcast.onchain.lens import compute_index
from proofcast.onchain.log_types import LogType, index_log_types, log_type, parse_logged
from proofcast.onchain.outcome import Outcome, parse_outcomes
from proofcast.onchain.policy import Policy, Terms, parse_policy, parse_terms
from proofcast.onchain.published import Published as Published


@dataclass(frozen=True, slots=True)
class TopicsDeployed:
    version: int


@dataclass(frozen=True, slots=True)
class TopicCreated:
    topic: bytes
    policy: Policy
    name: str

    @property
    def owner(self) -> bytes:
        """Part of the topic's id."""
        return self.topic[:20]


@dataclass(frozen=True, slots=True)
class PayloadTypeChanged:
    topic: bytes
    payload_type: str
    """ABI type of the payload, e.g. `(string flight, uint64 delay)`, or empty."""


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    topic: bytes
    policy: Policy


@dataclass(frozen=True, slots=True)
class RolesChanged:
    topic: bytes
    account: bytes
    roles: int
    """Bit 0: may publish; bit 1: may subscribe."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    topic: bytes
    subscriber: bytes
    index: int
    terms: Terms
    deposit_gwei: int


@dataclass(frozen=True, slots=True)
class Funded:
    topic: bytes
    index: int
    amount_gwei: int


@dataclass(frozen=True, slots=True)
class Withdrawn:
    topic: bytes
    index: int
    to: bytes
    amount_gwei: int


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    topic: bytes
    subscriber: bytes
    index: int
    residue_gwei: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """What became of one page of deliveries."""

    topic: bytes
    sequence: int
    first: int
    """Position of the first outcome in the order of this event."""
    remaining: int
    credited_gwei: int
    outcomes: tuple[Outcome, ...]

    def by_index(self) -> dict[int, Outcome]:
        """The outcomes by the index of the subscription, whatever the order of this event."""
        end = self.first + len(self.outcomes) + self.remaining
        return {
            compute_index(self.sequence, self.first + place, end): outcome
            for place, outcome in enumerate(self.outcomes)
        }


@dataclass(frozen=True, slots=True)
class Sealed:
    topic: bytes
    first: int
    end: int
    page: bytes


@dataclass(frozen=True, slots=True)
class Collected:
    account: bytes
    to: bytes
    amount_gwei: int


TopicsEvent = (
    TopicsDeployed
    | TopicCreated
    | PayloadTypeChanged
    | PolicyChanged
    | RolesChanged
    | Subscribed
    | Funded
    | Withdrawn
    | Unsubscribed
    | Published
    | Delivered
    | Sealed
    | Collected
)


def build_topic_created(topic: bytes, policy: int, name: str) -> TopicCreated:
    return TopicCreated(topic, parse_policy(policy), name)


def build_policy_changed(topic: bytes, policy: int) -> PolicyChanged:
    return PolicyChanged(topic, parse_policy(policy))


def build_subscribed(topic: bytes, subscriber: bytes, index: int, terms: int, deposit: int) -> Subscribed:
    return Subscribed(topic, subscriber, index, parse_terms(terms), deposit)


def build_delivered(
    topic: bytes, sequence: int, first: int, remaining: int, credited: int, outcomes: bytes
) -> Delivered:
    return Delivered(topic, sequence, first, remaining, credited, parse_outcomes(outcomes))


LOG_TYPES: tuple[LogType[TopicsEvent], ...] = (
    log_type("TopicsDeployed", "()", "(uint256)", TopicsDeployed),
    log_type("TopicCreated", "(bytes32)", "(uint256,string)", build_topic_created),
    log_type("PayloadTypeChanged", "(bytes32)", "(string)", PayloadTypeChanged),
    log_type("PolicyChanged", "(bytes32)", "(uint256)", build_policy_changed),
    log_type("RolesChanged", "(bytes32,address)", "(uint256)", RolesChanged),
    log_type("Subscribed", "(bytes32,address)", "(uint256,uint96,uint256)", build_subscribed),
    log_type("Funded", "(bytes32,uint256)", "(uint256)", Funded),
    log_type("Withdrawn", "(bytes32,uint256)", "(address,uint256)", Withdrawn),
    log_type("Unsubscribed", "(bytes32,address)", "(uint256,uint256)", Unsubscribed),
    log_type("Published", "(bytes32,uint256,bytes32)", "(address,bytes)", Published),
    log_type("Delivered", "(bytes32,uint256)", "(uint256,uint256,uint256,bytes)", build_delivered),
    log_type("Sealed", "(bytes32)", "(uint256,uint256,address)", Sealed),
    log_type("Collected", "(address)", "(address,uint256)", Collected),
)

TYPE_BY_HASH = index_log_types(LOG_TYPES)
HASH_BY_NAME = {known.name: type_hash for type_hash, known in TYPE_BY_HASH.items()}


def find_event(topics: Sequence[bytes], data: bytes) -> TopicsEvent | None:
    """The event behind a log's topics and data; None where it is not one of ours."""
    return parse_logged(TYPE_BY_HASH, topics, data)


def compute_type_hash(event: type[TopicsEvent]) -> bytes:
    """The first topic of every log of this type."""
    return HASH_BY_NAME[event.__name__]

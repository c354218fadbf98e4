"""A delivery as a Kafka record, as CloudEvents binds Kafka: structured or binary.

The key is the delivery's order key, so that a partition keeps what the ledger ordered: the topic, or the topic and the
event's key. An undo is a record of its own, in the same partition as the event that it undoes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from proofcast.broker.edge import compute_traceparent
from proofcast.broker.subscription import Pending, Terms
from proofcast.cloudevents import CONTENT_TYPE, encode_binary, parse_structured
from proofcast.errors import InvalidRequest, Reason

TOPIC_LENGTH_MAX = 249
"""As Kafka has it."""
TOPIC_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
OPTIONS = frozenset({"topic", "mode"})


class Mode(StrEnum):
    STRUCTURED = "structured"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Target:
    topic: str
    mode: Mode


@dataclass(frozen=True, slots=True)
class Record:
    key: bytes
    value: bytes
    headers: Mapping[str, bytes]


def parse_target(terms: Terms) -> Target:
    """From a subscription's options; which Kafka it is only the operator says."""
    unknown = terms.options.keys() - OPTIONS
    if unknown or terms.secrets:
        raise refuse(
            f"`{min(unknown, default='secrets')}` is nothing a Kafka sink knows", "options are `topic`, `mode`"
        )
    topic, mode = terms.options.get("topic", ""), terms.options.get("mode", Mode.STRUCTURED)
    if not 0 < len(topic) <= TOPIC_LENGTH_MAX or not set(topic) <= TOPIC_LETTERS or topic in (".", ".."):
        raise refuse(f"`{ascii(topic[:80])[1:-1]}` is no topic of Kafka", "write letters, digits, `.`, `_` and `-`")
    if mode not in list(Mode):
        raise refuse(f"`{ascii(mode[:80])[1:-1]}` is no mode", f"known are {', '.join(Mode)}")
    return Target(topic, Mode(mode))


def encode_record(pending: Pending, mode: Mode) -> Record:
    trace = {"traceparent": compute_traceparent(pending.event_id, pending.attempts + 1).encode()}
    key, body = pending.order_key.encode(), pending.encode()
    if mode is Mode.STRUCTURED:
        return Record(key, body, {"content-type": CONTENT_TYPE.encode(), **trace})
    headers, payload = encode_binary(parse_structured(body))
    named = {name.replace("ce-", "ce_", 1): value.encode() for name, value in headers.items()}
    return Record(key, payload, named | trace)


def refuse(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)

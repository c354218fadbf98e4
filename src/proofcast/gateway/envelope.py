"""A ledger's event on its way through the overlay, with what a stranger needs to check it.

It is the payload of an overlay event, one array of CBOR:

    ["proofcast gateway 1", event, evidence, [header...]]

The event is a CloudEvent in JSON, as a broker sends it; the evidence proves its log in its own block; the headers are
consecutive and that block's is among them. Those before it show what the block stands on, those behind it what stands
on the block. An envelope needs no other: the overlay promises no order, and a filter may pass one event in a thousand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cbor2

from proofcast.errors import InvalidInput, Reason
from proofcast.event import Event
from proofcast.overlay.settings import PAYLOAD_BYTES_MAX
from proofcast.routing.attributes import EventAttributes, Json, read_fields

FORMAT = "proofcast gateway 1"
FIELDS = 4
HEADERS_BEFORE_MAX = 32
"""Sent with each event: a subscriber that hears of the chain at least so often, in blocks, never loses the thread."""
HEADERS_MAX = 512
"""In one envelope; what a block needs to be read does not grow with them."""
ATTRIBUTES_MAX = 8
"""Of an envelope: every one of them is a rendezvous that the event visits."""


@dataclass(frozen=True, slots=True)
class Envelope:
    event: bytes
    evidence: bytes
    headers: tuple[bytes, ...]


def encode_envelope(envelope: Envelope) -> bytes:
    return cbor2.dumps([FORMAT, envelope.event, envelope.evidence, list(envelope.headers)])


def is_envelope(payload: bytes) -> bool:
    """Does it say that it is one? Other events travel the overlay too."""
    return payload[1:].startswith(cbor2.dumps(FORMAT))


def parse_envelope(payload: bytes) -> Envelope:
    """The parts; nothing is proven yet."""
    try:
        found = cbor2.loads(payload[:PAYLOAD_BYTES_MAX])
    except (cbor2.CBORError, ValueError, RecursionError, OverflowError, MemoryError):
        raise refuse("the payload is no array of CBOR") from None
    if not isinstance(found, list) or len(found) != FIELDS or found[0] != FORMAT:
        raise refuse(f"the payload does not begin with `{FORMAT}`")
    _, event, evidence, headers = found
    if not isinstance(headers, list) or len(headers) > HEADERS_MAX:
        raise refuse(f"the envelope has no list of at most `{HEADERS_MAX}` headers")
    if not all(isinstance(part, bytes) for part in (event, evidence, *headers)):
        raise refuse("a part of the envelope is no bytes")
    return Envelope(event, evidence, tuple(headers))


def fit_envelope(event: bytes, evidence: bytes, before: Sequence[bytes], rest: Sequence[bytes]) -> bytes | None:
    """Encoded, with as many headers before the event's block as there is room for; None where it does not fit at all.

    `rest` is the block's own header and those behind it.
    """
    for kept in (len(before), 0):
        payload = encode_envelope(Envelope(event, evidence, (*before[len(before) - kept :], *rest)))
        if len(payload) <= PAYLOAD_BYTES_MAX:
            return payload
    return None


def describe_event(words: Sequence[str], event: Event, fields: Json) -> EventAttributes:
    """How the overlay routes it: by its topic's word, and by the fields of a payload that is a JSON object."""
    named = fields if isinstance(fields, dict) else {}
    texts = {name: format_field(value) for name, value in named.items() if isinstance(value, str | int | float)}
    chosen = dict(list(texts.items())[: ATTRIBUTES_MAX - len(words)])
    return read_fields(words, chosen)


def format_field(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def refuse(message: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, message, hint="its publisher is no gateway, or one of another version")

"""An event as CloudEvents 1.0 writes it: one JSON object, or headers and a body.

Both forms say the same. Numbers that may pass 2^31 are text, because CloudEvents' integers end there; bytes are 0x and
hexadecimal digits, except the payload, which is base64 in JSON and the body itself in binary form. The id names the
event and the step: the same event undone has another one, and so has an event applied again after it was undone.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import orjson

from proofcast.errors import InvalidInput, Reason
from proofcast.event import Event, Finality, Position, Step

TYPE_PREFIX = "org.proofcast.event."
CONTENT_TYPE = "application/cloudevents+json"
PAYLOAD_TYPE = "application/octet-stream"
SEQUENCE_DIGITS = 20
"""So that text sorts as numbers do, whatever fits 64 bits."""
SOURCE = re.compile(r"eip155:(\d{1,20}):(0x[0-9a-f]{40})")

Attributes = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event on its way to one subscriber."""

    event: Event
    cursor: str
    """What the subscriber holds once it has this."""
    turn: int = 1
    """1 for the first time this step of this event is delivered, 2 after the chain undid and redid it, and so on."""
    is_repeated: bool = False
    """May the subscriber have had this very delivery before, unacknowledged?"""


def encode_structured(delivery: Delivery) -> bytes:
    payload = {"data_base64": base64.b64encode(delivery.event.payload).decode()}
    return orjson.dumps(build_attributes(delivery) | payload)


def encode_binary(delivery: Delivery) -> tuple[dict[str, str], bytes]:
    """Headers and body."""
    attributes = build_attributes(delivery)
    content_type = str(attributes.pop("datacontenttype"))
    headers = {f"ce-{name}": str(value) for name, value in attributes.items()}
    return headers | {"content-type": content_type}, delivery.event.payload


def build_attributes(delivery: Delivery) -> Attributes:
    event, at = delivery.event, delivery.event.position
    attributes: Attributes = {
        "specversion": "1.0",
        "id": compute_id(event, delivery.turn),
        "source": event.source,
        "type": TYPE_PREFIX + event.step,
        "time": format_time(event.timestamp),
        "datacontenttype": PAYLOAD_TYPE,
        "topic": encode_hex(event.topic),
        "sequence": str(event.sequence).zfill(SEQUENCE_DIGITS),
        "eventkey": encode_hex(event.key),
        "publisher": encode_hex(event.publisher),
        "blocknumber": str(at.block_number),
        "blockhash": encode_hex(at.block_hash),
        "transactionindex": at.transaction_index,
        "logindex": at.log_index,
        "trust": event.trust,
        "finality": event.finality,
        "cursor": delivery.cursor,
    }
    if delivery.turn > 1:
        attributes["turn"] = delivery.turn
    if delivery.is_repeated:
        attributes["repeated"] = "true"
    return attributes


@lru_cache(maxsize=1024)
def format_time(timestamp: int) -> str:
    """As RFC 3339; all events of a block have the same."""
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=1024)
def parse_time(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").timestamp())


def compute_id(event: Event, turn: int) -> str:
    at = event.position
    return format_id(at.chain_id, at.block_number, at.log_index, at.block_hash, event.step, turn)


def format_id(chain_id: int, block_number: int, log_index: int, block_hash: bytes, step: Step, turn: int) -> str:
    """Sorts by place on the chain; the hash tells blocks of one height apart."""
    mark = f"-{turn}" if turn > 1 else ""
    return f"{chain_id}/{block_number:012}/{log_index:06}/{block_hash.hex()}/{step.value}{mark}"


# --- reading


def parse_structured(data: bytes) -> Delivery:
    try:
        found = orjson.loads(data)
        payload = base64.b64decode(found.get("data_base64", ""), validate=True)
    except (ValueError, AttributeError, TypeError) as error:
        raise refuse(str(error)) from error
    return parse_attributes(found, payload)


def parse_binary(headers: Mapping[str, str], body: bytes) -> Delivery:
    found = {name[3:].lower(): value for name, value in headers.items() if name.lower().startswith("ce-")}
    return parse_attributes(found, body)


def parse_attributes(found: Mapping[str, object], payload: bytes) -> Delivery:
    """The delivery that the attributes describe; unknown attributes are passed over, as CloudEvents demands."""
    try:
        return build_delivery({name: str(value) for name, value in found.items()}, payload)
    except KeyError as error:
        raise refuse(f"it has no `{error.args[0]}`") from error
    except ValueError as error:
        raise refuse(str(error)) from error


def build_delivery(found: Mapping[str, str], payload: bytes) -> Delivery:
    if found["specversion"] != "1.0" or not found["type"].startswith(TYPE_PREFIX):
        raise ValueError(f"it is `{found['type']}` of version `{found['specversion']}`")
    source = SOURCE.fullmatch(found["source"])
    if source is None:
        raise ValueError(f"its source is `{found['source']}`")
    event = Event(
        source=found["source"],
        topic=decode_hex(found["topic"]),
        sequence=int(found["sequence"]),
        key=decode_hex(found["eventkey"]),
        publisher=decode_hex(found["publisher"]),
        payload=payload,
        timestamp=parse_time(found["time"]),
        position=Position(
            int(source[1]),
            int(found["blocknumber"]),
            decode_hex(found["blockhash"]),
            int(found["transactionindex"]),
            int(found["logindex"]),
        ),
        trust=found["trust"],
        finality=Finality(found["finality"]),
        step=Step(found["type"].removeprefix(TYPE_PREFIX)),
    )
    delivery = Delivery(event, found["cursor"], int(found.get("turn", "1")), found.get("repeated") == "true")
    if found["id"] != compute_id(event, delivery.turn):
        raise ValueError(f"its id is `{found['id']}` where its place says `{compute_id(event, delivery.turn)}`")
    return delivery


def encode_hex(data: bytes) -> str:
    return f"0x{data.hex()}"


def decode_hex(text: str) -> bytes:
    if not text.startswith("0x"):
        raise ValueError(f"`{text[:80]}` does not begin with 0x")
    return bytes.fromhex(text[2:])


def refuse(fault: str) -> InvalidInput:
    return InvalidInput(
        Reason.MALFORMED,
        f"this is no event of Proofcast: {fault}",
        hint="send what a broker sent, unchanged",
    )

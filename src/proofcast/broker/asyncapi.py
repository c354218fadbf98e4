"""What the broker sends by itself, and what a WebSocket's subscriber says, as an AsyncAPI 3.0 document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from proofcast.broker.messages import NAMESPACE, READ_AHEAD_DEFAULT, READ_AHEAD_MAX
from proofcast.broker.schemas import CURSOR, FLAG, SCHEMAS, Schema, number, one_of, record, refer, several, text
from proofcast.event import Finality

Document = dict[str, object]

NAMED = record({"namespace": {"const": NAMESPACE}, "name": text()}, "namespace")
OPTIONS = record(
    {
        "firstEvent": text("`oldest`, `newest`, `block:N`, `sequence:N`, `time:...`, or a cursor."),
        "finality": one_of(list(Finality)),
        "readAhead": number(minimum=1, maximum=READ_AHEAD_MAX, default=READ_AHEAD_DEFAULT),
        "batch": FLAG,
        "withData": FLAG,
    },
    *("firstEvent", "finality", "readAhead", "batch", "withData"),
)
SETTLEMENT: dict[str, Schema] = {"id": CURSOR, "subscription": refer("Named")}

SPOKEN: Mapping[str, Schema] = {
    "start": record(
        {
            "type": {"const": "start"},
            "namespace": {"const": NAMESPACE},
            "name": text(),
            "ephemeral": FLAG,
            "autoack": FLAG,
            "filter": refer("Filter"),
            "options": refer("Options"),
        },
        *("namespace", "name", "ephemeral", "autoack", "filter", "options"),
    ),
    "ack": record({"type": {"const": "ack"}, **SETTLEMENT}, "subscription"),
    "nack": record({"type": {"const": "nack"}, **SETTLEMENT}, "subscription"),
}
"""By a subscriber, through a WebSocket."""

TOLD: Mapping[str, Schema] = {
    "event_batch": record({"type": {"const": "event_batch"}, **SETTLEMENT, "events": several(refer("Event"))}),
    "heartbeat": record({"type": {"const": "heartbeat"}, "subscription": refer("Named"), "block": refer("Block")}),
    "rewind": record({"type": {"const": "rewind"}, "subscription": refer("Named"), "block": refer("Block")}),
    "protocol_error": record({"type": {"const": "protocol_error"}, "error": text(), "reason": text(), "hint": text()}),
}
"""By the broker, through a WebSocket."""

STREAMED: Mapping[str, Schema] = {
    "apply": refer("Event"),
    "undo": refer("Event"),
    "heartbeat": refer("Block"),
    "rewind": refer("Block"),
    "problem": refer("Problem"),
}
"""As the data of server-sent events of these names."""


@dataclass(frozen=True, slots=True)
class Channel:
    name: str
    address: str
    action: Literal["send", "receive"]
    """What the broker does here."""
    messages: Mapping[str, Schema]
    meaning: str


CHANNELS = (
    Channel("stream", "/api/v1/events/stream", "send", STREAMED, "Server-sent events: history, then what comes."),
    Channel("told", "/api/v1/ws", "send", TOLD, "A WebSocket, what the broker says."),
    Channel("spoken", "/api/v1/ws", "receive", SPOKEN, "A WebSocket, what the subscriber says."),
    Channel("webhook", "{url}", "send", {"event": refer("Event")}, "An HTTP POST per event, by Standard Webhooks."),
    Channel("kafka", "{topic}", "send", {"event": refer("Event")}, "A record per event, as CloudEvents binds Kafka."),
)


def build_asyncapi(version: str) -> Document:
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Proofcast broker", "version": version},
        "channels": {channel.name: describe_channel(channel) for channel in CHANNELS},
        "operations": {
            channel.name: {"action": channel.action, "channel": {"$ref": f"#/channels/{channel.name}"}}
            for channel in CHANNELS
        },
        "components": {
            "schemas": {**SCHEMAS, "Named": NAMED, "Options": OPTIONS},
            "messages": {
                f"{channel.name}.{kind}": {"name": kind, "payload": schema}
                for channel in CHANNELS
                for kind, schema in channel.messages.items()
            },
        },
    }


def describe_channel(channel: Channel) -> Document:
    messages = {kind: {"$ref": f"#/components/messages/{channel.name}.{kind}"} for kind in channel.messages}
    described: Document = {"address": channel.address, "description": channel.meaning, "messages": messages}
    if channel.address.startswith("{"):
        described["parameters"] = {channel.address.strip("{}"): {"description": "As the subscription says."}}
    return described

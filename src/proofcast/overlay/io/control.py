"""Talking to a peer process over its local socket."""

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.overlay.records import Event, EventId
from proofcast.routing.attributes import parse_attributes


def connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        message = f"no peer runs in the folder `{path.parent}`"
        raise Unavailable(Reason.NO_ANSWER, message, hint="start it with `proofcast peer start`") from None
    return connection


def ask(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Send one command and return its answer; a refusal comes back as the error it was there."""
    with connect(path) as connection, connection.makefile("rwb") as file:
        file.write(json.dumps(request).encode() + b"\n")
        file.flush()
        answer = json.loads(file.readline() or b'{"error": "the peer stopped", "hint": "start it again", "code": 75}')
    if "error" in answer:
        kind = {2: InvalidRequest, 1: InvalidInput}.get(answer["code"], Unavailable)
        reason = Reason.NO_ANSWER if kind is Unavailable else Reason.BAD_ARGUMENT
        raise kind(reason, answer["error"], hint=answer["hint"])
    result: dict[str, Any] = answer["ok"]
    return result


def watch(path: Path) -> Iterator[dict[str, Any]]:
    """Delivered events, the recent ones first, for as long as the peer runs."""
    with connect(path) as connection, connection.makefile("rwb") as file:
        file.write(b'{"do": "watch"}\n')
        file.flush()
        for line in file:
            yield json.loads(line)


def read_event(row: dict[str, Any]) -> Event:
    """A delivered event as the peer's socket gives it."""
    _, session, sequence = str(row["event"]).split("/")
    return Event(
        EventId(bytes.fromhex(row["publisher"]), int(session), int(sequence)),
        int(row["born_ms"]),
        parse_attributes(row["attributes"]),
        base64.b64decode(row["payload"]),
        base64.b64decode(row["signature"]),
    )

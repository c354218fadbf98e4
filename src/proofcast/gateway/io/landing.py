"""A peer's events onto a topic of a chain: taken from the peer's inbox, published once, then forgotten there.

The peer keeps an event until it is told that it was dealt with, and the sender knows a transaction again by its key,
the event's id: killed anywhere, the process goes on and publishes nothing twice. An event that came out of the same
topic is passed over, or it would go round for ever.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proofcast.cloudevents import parse_structured
from proofcast.errors import InvalidInput
from proofcast.gateway.envelope import is_envelope, parse_envelope
from proofcast.gateway.signed import encode_signed
from proofcast.onchain.deployment import Contracts
from proofcast.onchain.io.publishing import publish
from proofcast.onchain.io.sender import Sender
from proofcast.overlay.io.control import ask, read_event
from proofcast.overlay.io.options import SOCKET_NAME
from proofcast.overlay.records import Event

PAYLOAD_BYTES_MAX = 24 * 1024
"""On a chain each byte is paid for; larger events are passed over."""


def land(
    state: Path, predicate: str, sender: Sender, contracts: Contracts, topic: bytes, note: Callable[[str], None]
) -> Iterator[tuple[str, str]]:
    """Run for as long as somebody asks; gives the event's id and the transaction's hash."""
    socket = state / SOCKET_NAME
    ask(socket, {"do": "subscribe", "predicate": predicate, "keep": True})
    taken = 0
    while True:
        answer = ask(socket, {"do": "take", "predicate": predicate, "taken": taken})
        for row in answer["events"]:
            payload = choose_payload(row, sender.chain_id, topic, note)
            if payload is not None:
                key = f"overlay event {row['event']} to 0x{topic.hex()}"
                receipt = publish(sender, contracts, topic, payload, idempotency_key=key, payee=sender.address)
                yield row["event"], f"0x{receipt.transaction_hash.hex()}"
            taken = int(row["number"])


def choose_payload(row: dict[str, Any], chain_id: int, topic: bytes, note: Callable[[str], None]) -> bytes | None:
    """What goes on the chain; None where the event has no business there."""
    event = read_event(row)
    payload = encode_signed(event)
    if is_from(event, chain_id, topic):
        note(f"event `{row['event']}` came out of this topic: passed over")
        return None
    if len(payload) > PAYLOAD_BYTES_MAX:
        note(f"event `{row['event']}` has `{len(payload)}` bytes, more than `{PAYLOAD_BYTES_MAX}`: passed over")
        return None
    return payload


def is_from(event: Event, chain_id: int, topic: bytes) -> bool:
    if not is_envelope(event.payload):
        return False
    try:
        found = parse_structured(parse_envelope(event.payload).event).event
    except InvalidInput:
        return False
    return (found.position.chain_id, found.topic) == (chain_id, topic)

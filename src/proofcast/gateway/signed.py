"""An overlay's event as it stands on a chain: a JSON object that anybody can check against its publisher's key.

    {"peer": "0x...", "session": "...", "sequence": "1", "born_ms": "...", "attributes": "surf T/price V 1050",
     "payload": "base64", "signature": "base64"}

`peer` is the public key of the peer that published it, whose Ed25519 signature covers everything else. So whoever put
the event on the chain, and the account it did so with, need not be believed.
"""

import base64
import binascii

import orjson

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.overlay.identity import verify_ed25519
from proofcast.overlay.records import Event, EventId, is_event_genuine
from proofcast.routing.attributes import parse_attributes

KEY_BYTES = 32


def encode_signed(event: Event) -> bytes:
    return orjson.dumps(
        {
            "peer": f"0x{event.id.publisher.hex()}",
            "session": str(event.id.session),
            "sequence": str(event.id.sequence),
            "born_ms": str(event.born_ms),
            "attributes": str(event.attributes),
            "payload": base64.b64encode(event.payload).decode(),
            "signature": base64.b64encode(event.signature).decode(),
        }
    )


def verify_signed(data: bytes) -> Event:
    """The event, if it is what its publisher signed."""
    try:
        found = orjson.loads(data)
        publisher = bytes.fromhex(str(found["peer"]).removeprefix("0x"))
        event_id = EventId(publisher, int(found["session"]), int(found["sequence"]))
        payload, signature = (base64.b64decode(str(found[name]), validate=True) for name in ("payload", "signature"))
        attributes = parse_attributes(str(found["attributes"]))
        event = Event(event_id, int(found["born_ms"]), attributes, payload, signature)
    except (ValueError, KeyError, TypeError, binascii.Error, InvalidRequest) as error:
        message = f"this is no event of a peer (`{type(error).__name__}: {error}`)"
        raise InvalidInput(Reason.MALFORMED, message, hint="give it as a gateway wrote it") from error
    if len(publisher) != KEY_BYTES or not is_event_genuine(event, verify_ed25519):
        message = f"the signature is not that of peer `0x{publisher.hex()}`"
        raise InvalidInput(Reason.DISAGREES, message, hint="somebody changed the event, or made it up")
    return event

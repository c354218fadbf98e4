"""Which events a subscription wants, in words a person can write."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Event

ADDRESS_LENGTH, TOPIC_LENGTH = 20, 32
NAME_LENGTH_MAX = 256
"""Characters of a topic's name or a pattern."""
HEX = re.compile(r"0x([0-9a-fA-F]*)")
FIELDS = ("topic", "publisher", "contract")


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that is given must fit; nothing given means every publication."""

    topic: bytes = b""
    """One topic by its id."""
    name: str = ""
    """Topics by name; `*` and `?` stand for any characters and any one."""
    publisher: bytes = b""
    contract: bytes = b""
    """Raw logs of this contract instead of publications. Nobody counts those, so a gap in them cannot be seen."""

    def matches(self, event: Event, names: Mapping[bytes, str]) -> bool:
        """`names` are those of the topics known so far."""
        if self.contract:
            return event.sequence == 0 and event.source.endswith(self.contract.hex())
        return (
            event.sequence > 0
            and (not self.topic or event.topic == self.topic)
            and (not self.publisher or event.publisher == self.publisher)
            and (not self.name or fnmatchcase(names.get(event.topic, ""), self.name))
        )


def parse_selection(fields: Mapping[str, str]) -> Selection:
    """From the parameters of a request; `topic` may be an id or a name."""
    unknown = fields.keys() - set(FIELDS)
    if unknown:
        raise refuse(f"`{min(unknown)}` is nothing to select by", f"known are {', '.join(FIELDS)}")
    topic = fields.get("topic", "")
    is_id = HEX.fullmatch(topic) is not None
    if len(topic) > NAME_LENGTH_MAX:
        raise refuse(f"the topic has `{len(topic)}` characters", f"names have at most {NAME_LENGTH_MAX}")
    selection = Selection(
        topic=parse_bytes("topic", topic, TOPIC_LENGTH) if is_id else b"",
        name="" if is_id else topic,
        publisher=parse_bytes("publisher", fields.get("publisher", ""), ADDRESS_LENGTH),
        contract=parse_bytes("contract", fields.get("contract", ""), ADDRESS_LENGTH),
    )
    if selection.contract and (topic or selection.publisher):
        raise refuse(
            "`contract` goes with no `topic` or `publisher`", "raw logs have neither; ask for one or the other"
        )
    return selection


def format_selection(selection: Selection) -> dict[str, str]:
    """The parameters that `parse_selection` reads as this."""
    found = {
        "topic": selection.name or encode_hex(selection.topic),
        "publisher": encode_hex(selection.publisher),
        "contract": encode_hex(selection.contract),
    }
    return {name: value for name, value in found.items() if value}


def encode_hex(data: bytes) -> str:
    return f"0x{data.hex()}" if data else ""


def parse_bytes(what: str, text: str, length: int) -> bytes:
    if not text:
        return b""
    digits = HEX.fullmatch(text)
    if digits is None or len(digits[1]) != 2 * length:
        raise refuse(f"`{ascii(text[:80])[1:-1]}` is no {what}", f"write 0x and {2 * length} hexadecimal digits")
    return bytes.fromhex(digits[1])


def refuse(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)

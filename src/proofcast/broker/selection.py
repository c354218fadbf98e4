"""Which events a subscription wants, in words a person can write."""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase

from proofcast.broker.catalogue import Catalogue
from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Event
from proofcast.feed.subject import Kind, join_subject, split_subject
from proofcast.routing.meaning import is_meant, verify_subscription_key
from proofcast.routing.predicate import Predicate, format_predicate, matches, parse_predicate

ADDRESS_LENGTH, TOPIC_LENGTH = 20, 32
NAME_LENGTH_MAX = 256
"""Characters of a topic's name or a pattern."""
HEX = re.compile(r"0x([0-9a-fA-F]*)")
WHERE_LENGTH_MAX = 1_024
"""Characters of a predicate."""
FIELDS = ("topic", "key", "publisher", "contract", "where")


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that is given must fit; nothing given means every publication."""

    topic: bytes = b""
    """One topic by its id."""
    name: str = ""
    """Topics by name; `*` and `?` stand for any characters and any one."""
    kind: Kind = Kind.TOPIC
    """What `topic` or `name` names."""
    key: str = ""
    """Routing key, with wildcards, that must mean the event's; see `routing/meaning.py`."""
    publisher: bytes = b""
    contract: bytes = b""
    """Raw logs of this contract instead of publications. Nobody counts those, so a gap in them cannot be seen."""

    where: Predicate | None = None
    """What the fields of the payload must be, by the type that the topic's owner declared."""

    @property
    def is_by_topic(self) -> bool:
        """Does the topic's id alone decide?"""
        return not (self.name or self.publisher or self.contract or self.where or self.key or self.names_others)

    @property
    def names_others(self) -> bool:
        """Is something else than a topic named?"""
        return self.kind is not Kind.TOPIC

    @property
    def awaited(self) -> bytes | None:
        """The topic whose publications alone may be wanted; None where others may be."""
        return None if self.names_others else self.topic or None

    def matches(self, event: Event, catalogue: Catalogue, queues: Set[bytes] = frozenset()) -> bool:
        """`queues` are those that a message of an exchange reached."""
        if self.contract:
            return event.sequence == 0 and event.source.endswith(self.contract.hex())
        return (
            event.sequence > 0
            and self._is_of(event, catalogue, queues)
            and (not self.publisher or event.publisher == self.publisher)
            and (not self.key or is_meant(self.key, event.key))
            and (self.where is None or matches(self.where, catalogue.get_attributes(event)))
        )

    def _is_of(self, event: Event, catalogue: Catalogue, queues: Set[bytes]) -> bool:
        """Is it of what is named?"""
        if self.kind is Kind.QUEUE:
            return any(self._is_named(queue, catalogue.queues.get(queue, "")) for queue in queues)
        is_message = catalogue.is_message(event)
        if self.kind is Kind.EXCHANGE or self.topic or self.name:
            is_kind = is_message is (self.kind is Kind.EXCHANGE)
            return is_kind and self._is_named(event.topic, catalogue.get_name(event))
        return True

    def _is_named(self, found: bytes, name: str) -> bool:
        return (not self.topic or found == self.topic) and (not self.name or fnmatchcase(name, self.name))


def parse_selection(fields: Mapping[str, str]) -> Selection:
    """From the parameters of a request; `topic` may be an id or a name."""
    unknown = fields.keys() - set(FIELDS)
    if unknown:
        raise refuse(f"`{min(unknown)}` is nothing to select by", f"known are {', '.join(FIELDS)}")
    kind, topic = split_subject(fields.get("topic", ""))
    is_id = HEX.fullmatch(topic) is not None
    if len(topic) > NAME_LENGTH_MAX:
        raise refuse(f"the topic has `{len(topic)}` characters", f"names have at most {NAME_LENGTH_MAX}")
    selection = Selection(
        topic=parse_bytes("topic", topic, TOPIC_LENGTH) if is_id else b"",
        name="" if is_id else topic,
        kind=kind,
        key=parse_key(fields.get("key", "")),
        publisher=parse_bytes("publisher", fields.get("publisher", ""), ADDRESS_LENGTH),
        contract=parse_bytes("contract", fields.get("contract", ""), ADDRESS_LENGTH),
        where=parse_where(fields.get("where", "")),
    )
    if selection.contract and (fields.get("topic") or selection.publisher or selection.where or selection.key):
        raise refuse(
            "`contract` goes with no `topic`, `key`, `publisher` or `where`",
            "raw logs have none of them; ask for one or the other",
        )
    return selection


def format_selection(selection: Selection) -> dict[str, str]:
    """The parameters that `parse_selection` reads as this."""
    found = {
        "topic": join_subject(selection.kind, selection.name or encode_hex(selection.topic)),
        "key": selection.key,
        "publisher": encode_hex(selection.publisher),
        "contract": encode_hex(selection.contract),
        "where": format_predicate(selection.where) if selection.where else "",
    }
    return {name: value for name, value in found.items() if value}


def parse_key(text: str) -> str:
    return verify_subscription_key(text) if text else ""


def parse_where(text: str) -> Predicate | None:
    if len(text) > WHERE_LENGTH_MAX:
        raise refuse(f"the predicate has `{len(text)}` characters", f"write at most {WHERE_LENGTH_MAX}")
    return parse_predicate(text) if text else None


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

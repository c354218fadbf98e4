"""Binding keys and routing keys, with the same meaning as in the contracts.

- A **binding key** ties a queue to an exchange: one or more of `a-z A-Z 0-9 -`.
- A **routing key** comes with a message. Beside those characters it may hold wildcards, anywhere and several:
  `*` stands for one or more characters, `#` for exactly one. Without wildcard it is *direct* and must be identical to
  the binding key; `*` alone is *fanout* and reaches every queue; else it is a *topic* key.
- An exchange may choose to read `#` as none or one character (`Hash.NONE_OR_ONE`).
- A **hierarchical** routing key is `a.b.c`: an exchange routes by `a` and passes `b.c` on.

Matching follows all readings of a key at once, one bit each, so it takes time in proportion to the binding key's length
and no key can make it slow.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from proofcast.errors import InvalidRequest, Reason

ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""Every character of a binding key, in ASCII order."""
KEY_CHARACTERS_MAX = 128
"""Of one key or one part of a hierarchical key: what a contract reads in one go."""
PARTS_MAX = 8
"""Of a hierarchical key: each is a hop, so loops of exchanges end."""

BINDING_FORM = re.compile(r"[a-zA-Z0-9-]+", re.ASCII)
ROUTING_FORM = re.compile(r"[a-zA-Z0-9*#-]+", re.ASCII)


class Hash(StrEnum):
    """How an exchange reads `#`."""

    ONE = "one"
    NONE_OR_ONE = "none-or-one"


class Delivery(StrEnum):
    DIRECT = "direct"
    TOPIC = "topic"
    FANOUT = "fanout"


def refuse_key(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_KEY, message, hint=hint)


def verify_binding_key(key: str) -> str:
    return verify_form(key, BINDING_FORM, "binding key", "`a-z A-Z 0-9 -`")


def verify_form(key: str, form: re.Pattern[str], kind: str, characters: str) -> str:
    if not key:
        raise refuse_key(f"a {kind} is empty", f"write one or more of {characters}")
    if len(key) > KEY_CHARACTERS_MAX:
        raise refuse_key(f"the {kind} `{key[:20]}...` is too long", f"write at most `{KEY_CHARACTERS_MAX}` characters")
    begin = form.match(key)
    end = begin.end() if begin else 0
    if end < len(key):
        raise refuse_key(f"the {kind} `{key}` has a `{key[end]}` at character {end + 1}", f"use only {characters}")
    return key


@dataclass(frozen=True, slots=True)
class RoutingKey:
    """One part of a routing key; bit `i` of a state is set where the first `i` elements have been read."""

    text: str
    hash: Hash
    _readers: dict[str, int]
    """For each character the elements that may read it."""
    _repeating: int
    """The states that any character leaves as they are: those after a `*`."""
    _skippable: int
    """The elements that may read nothing."""

    @property
    def delivery(self) -> Delivery:
        if self.text == "*":
            return Delivery.FANOUT
        return Delivery.TOPIC if "*" in self.text or "#" in self.text else Delivery.DIRECT

    def matches(self, binding: str) -> bool:
        """Whether a valid binding key is one of those meant."""
        states = self.begin()
        for character in binding:  # `read`, written out: a million bindings are looked at so
            read = states & self._readers.get(character, self._readers[""])
            states = self._skip(read << 1 | states & self._repeating)
        return self.is_end(states)

    def begin(self) -> int:
        """The states in which reading begins."""
        return self._skip(1)

    def read(self, states: int, characters: str) -> int:
        """The states after one character, whichever of these it is."""
        readers = 0
        for character in characters:
            readers |= self._readers.get(character, self._readers[""])
        return self._skip((states & readers) << 1 | states & self._repeating)

    def is_end(self, states: int) -> bool:
        """Whether a key may end in one of these states."""
        return states >> len(self.text) & 1 == 1

    def _skip(self, states: int) -> int:
        while (more := states | (states & self._skippable) << 1) != states:
            states = more
        return states


def parse_routing_key(text: str, hash_means: Hash = Hash.ONE) -> RoutingKey:
    """Read one part of a routing key."""
    verify_form(text, ROUTING_FORM, "routing key", "`a-z A-Z 0-9 -` and the wildcards `*` and `#`")
    bits = {place: 1 << place for place in range(len(text))}
    wild = sum(bits[place] for place, element in enumerate(text) if element in "*#")
    readers = {
        element: wild | sum(bits[place] for place, other in enumerate(text) if other == element) for element in text
    }
    repeating = sum(2 * bits[place] for place, element in enumerate(text) if element == "*")
    hashes = sum(bits[place] for place, element in enumerate(text) if element == "#")
    return RoutingKey(
        text, hash_means, readers | {"": wild}, repeating, hashes if hash_means is Hash.NONE_OR_ONE else 0
    )


def split_hierarchical_key(text: str) -> tuple[str, str | None]:
    """The part by which an exchange routes, and what it passes on; None where nothing is left."""
    parts = text.split(".")
    if len(parts) > PARTS_MAX:
        raise refuse_key(f"the routing key `{text[:40]}` has `{len(parts)}` parts", f"write at most `{PARTS_MAX}`")
    for part in parts:
        verify_form(part, ROUTING_FORM, "routing key", "`a-z A-Z 0-9 -`, `*` and `#` between the dots")
    return parts[0], ".".join(parts[1:]) or None

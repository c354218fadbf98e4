"""Many bindings, found by routing key without looking at all of them.

A direct key is looked up. For keys with wildcards every binding key stands in lists by its *grams*: three characters
in a row, where `^` and `$` mark its beginning and its end. Whatever matches `colour-bl*` holds the grams `^co`, `col`,
`olo` and so on, so only the shortest of their lists is gone through; one character at an end (`c*`, `*e`) is a gram,
too. A key whose literal parts are shorter than that (`*a*`, `##-#`) goes through the bindings of the lengths it allows.

Removed bindings stay in the lists until they are half of all, then the lists are made anew.
"""

from array import array
from collections.abc import Iterable
from itertools import chain

from proofcast.errors import InvalidRequest, Reason
from proofcast.routing.key import Delivery, Hash, RoutingKey, parse_routing_key, verify_binding_key

GRAM = 3
REBUILD_MIN = 1024
"""Removed bindings below which the lists are left alone."""


class BindingIndex:
    """Binding keys with the queues bound by them; a queue is found once however many of its keys match."""

    def __init__(self, hash_means: Hash = Hash.ONE) -> None:
        self._hash_means = hash_means
        self._queues: dict[str, tuple[int, ...]] = {}
        self._keys: list[str] = []
        self._numbers: dict[str, int] = {}
        self._grams: dict[str, array[int]] = {}
        self._lengths: dict[int, array[int]] = {}

    def __len__(self) -> int:
        """The number of bindings."""
        return sum(map(len, self._queues.values()))

    def add(self, key: str, queue: int) -> None:
        queues = self._queues.get(verify_binding_key(key), ())
        if queue in queues:
            message = f"the queue `{queue}` is bound by `{key}` already"
            raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="bind it by another key")
        self._queues[key] = (*queues, queue)
        if key not in self._numbers:
            self._list_key(key)

    def remove(self, key: str, queue: int) -> None:
        queues = self._queues.get(key, ())
        if queue not in queues:
            message = f"the queue `{queue}` is not bound by `{key}`"
            raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="remove only bindings that were added")
        self._queues[key] = tuple(other for other in queues if other != queue)
        if not self._queues[key]:
            del self._queues[key]
        if len(self._keys) > 2 * len(self._queues) + REBUILD_MIN:
            self._rebuild()

    def find(self, routing_key: str) -> set[int]:
        """The queues that a message with this routing key reaches."""
        wanted = parse_routing_key(routing_key, self._hash_means)
        return {queue for key in self.find_keys(wanted) for queue in self._queues[key]}

    def find_keys(self, wanted: RoutingKey) -> list[str]:
        """The binding keys that are meant."""
        match wanted.delivery:
            case Delivery.DIRECT:
                return [wanted.text] if wanted.text in self._queues else []
            case Delivery.FANOUT:
                return list(self._queues)
        lengths = self._list_lengths(wanted)
        candidates = (self._keys[number] for number in self.find_candidates(wanted))
        return [key for key in candidates if len(key) in lengths and key in self._queues and wanted.matches(key)]

    def _list_key(self, key: str) -> None:
        number = self._numbers[key] = len(self._keys)
        self._keys.append(key)
        self._lengths.setdefault(len(key), array("I")).append(number)
        for gram in list_grams(f"^{key}$"):
            self._grams.setdefault(gram, array("I")).append(number)

    def _rebuild(self) -> None:
        self._keys, self._numbers, self._grams, self._lengths = [], {}, {}, {}
        for key in self._queues:
            self._list_key(key)

    def find_candidates(self, wanted: RoutingKey) -> Iterable[int]:
        """The numbers of the keys that have to be looked at."""
        lists = [self._grams.get(gram, array("I")) for gram in list_wanted_grams(wanted)]
        if lists:
            return min(lists, key=lambda numbers: len(numbers))
        return chain.from_iterable(self._lengths.get(length, ()) for length in self._list_lengths(wanted))

    def _list_lengths(self, wanted: RoutingKey) -> range:
        """The lengths that a key may have that is meant."""
        skippable = wanted.text.count("#") if wanted.hash is Hash.NONE_OR_ONE else 0
        most = max(self._lengths, default=0) if "*" in wanted.text else len(wanted.text)
        return range(len(wanted.text) - skippable, most + 1)


def list_grams(literal: str) -> set[str]:
    """All of three characters, and those of two that have a mark."""
    inner = {literal[place : place + GRAM] for place in range(len(literal) - GRAM + 1)}
    return inner | {
        pair for pair in (literal[:2], literal[-2:]) if len(pair) == 2 and (pair[0] == "^" or pair[1] == "$")
    }


def list_wanted_grams(wanted: RoutingKey) -> set[str]:
    """The grams of the parts between wildcards, which every key that is meant holds."""
    literals = f"^{wanted.text}$".replace("#", "*").split("*")
    return {gram for literal in literals for gram in list_grams(literal)}

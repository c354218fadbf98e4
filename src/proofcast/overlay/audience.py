"""Who of many wants an event: their predicates in the matching index, so that nobody is asked one by one."""

from proofcast.routing.attributes import EventAttributes
from proofcast.routing.index import MatchingIndex
from proofcast.routing.predicate import Predicate


class Audience:
    def __init__(self) -> None:
        self._index = MatchingIndex()
        self._numbers: dict[bytes, dict[Predicate, int]] = {}
        self._names: dict[int, bytes] = {}
        """By the number of a predicate in the index."""
        self._count = 0

    def add(self, name: bytes, predicate: Predicate) -> None:
        numbers = self._numbers.setdefault(name, {})
        if predicate not in numbers:
            self._index.add(self._count, predicate)
            numbers[predicate] = self._count
            self._names[self._count] = name
            self._count += 1

    def remove(self, name: bytes) -> None:
        numbers = list(self._numbers.pop(name, {}).values())
        self._index.remove_many(numbers)
        for number in numbers:
            del self._names[number]

    def find(self, attributes: EventAttributes) -> list[bytes]:
        """Whom the event concerns, each once, in the order of their coming."""
        return list(dict.fromkeys(self._names[number] for number in self._index.match(attributes)))

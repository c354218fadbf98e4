"""Finding the peers nearest to a place: Kademlia's iterative lookup along disjoint paths, as S/Kademlia does.

The nearest known contacts are dealt out to `d` paths. Each path asks its nearest unasked candidates, a few at a time,
and takes the contacts in the answers as further candidates; no peer is ever asked by two paths. A path ends when its
`size` nearest candidates have all answered or failed. Liars can lead astray the paths they stand on, not the others;
the result is the nearest of what all paths found *and heard from*.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from proofcast.overlay.identity import Contact

CANDIDATES_MAX = 200
"""Candidates that one path considers: what a liar can make us ask is bounded."""


@dataclass(slots=True)
class Path:
    candidates: dict[bytes, Contact] = field(default_factory=dict)
    asking: set[bytes] = field(default_factory=set)
    answered: set[bytes] = field(default_factory=set)


class Lookup:
    """One search. `ask` says whom to ask next; `answer` and `fail` say what came of it."""

    def __init__(self, target: int, seeds: Sequence[Contact], *, paths: int, parallel: int, size: int) -> None:
        self.target = target
        self._size = size
        self._parallel = parallel
        self._claimed: dict[bytes, Path] = {}
        self._paths = [Path() for _ in range(paths)]
        for place, seed in enumerate(seeds):
            self._paths[place % paths].candidates[seed.public_key] = seed

    def ask(self) -> list[Contact]:
        """Whom to send `FindNode` now; empty while enough answers are outstanding, and at the end."""
        return [contact for path in self._paths for contact in self._ask_on(path)]

    def _ask_on(self, path: Path) -> list[Contact]:
        asked = []
        for contact in self._get_nearest(path):
            if len(path.asking) >= self._parallel:
                break
            if contact.public_key not in self._claimed:
                self._claimed[contact.public_key] = path
                path.asking.add(contact.public_key)
                asked.append(contact)
        return asked

    def _get_nearest(self, path: Path) -> list[Contact]:
        """The nearest candidates that have not failed and are not another path's."""
        mine = (contact for key, contact in path.candidates.items() if self._claimed.get(key, path) is path)
        return sorted(mine, key=lambda contact: contact.position ^ self.target)[: self._size]

    def is_asking(self, public_key: bytes) -> bool:
        path = self._claimed.get(public_key)
        return path is not None and public_key in path.asking

    def answer(self, public_key: bytes, contacts: Iterable[Contact]) -> None:
        path = self._claimed[public_key]
        path.asking.discard(public_key)
        path.answered.add(public_key)
        for contact in contacts:
            if len(path.candidates) < CANDIDATES_MAX:
                path.candidates.setdefault(contact.public_key, contact)

    def fail(self, public_key: bytes) -> None:
        path = self._claimed[public_key]
        path.asking.discard(public_key)
        path.candidates.pop(public_key, None)

    @property
    def is_done(self) -> bool:
        return not any(path.asking for path in self._paths)

    def get_result(self) -> list[Contact]:
        """The nearest peers that answered, nearest first."""
        found = (contact for path in self._paths for key, contact in path.candidates.items() if key in path.answered)
        return sorted(found, key=lambda contact: contact.position ^ self.target)[: self._size]

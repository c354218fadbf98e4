"""Which messages a subscription by routing key gets: those that a queue could get which is bound by a key it means.

Both sides may hold wildcards, and a message's key may be an automaton. They meet where some binding key is meant by
both: so `colour-blue` gets what a queue gets that is bound by `colour-blue`, and `colour-bl*` what any of the queues
gets that are bound by `colour-black`, `colour-blue` and so on.

- Keys of several parts meet part by part; parts that a subscription does not name may be anything, as an exchange
  routes by the first one alone.
- A topic's events have keys of 32 bytes, mostly hashes of texts: they are meant by that text, or by their digits.
- `#` is one character, also for messages of an exchange that reads it as none or one.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from proofcast.errors import ProofcastError
from proofcast.ethereum.keccak import keccak256
from proofcast.routing.automaton import START, VERSION, Automaton, get_automaton_length, parse_automaton
from proofcast.routing.key import ALPHABET, RoutingKey, parse_routing_key, split_hierarchical_key

MEETINGS_KEPT = 65_536
"""Answers remembered: subscriptions and keys are few, messages many."""

Moves = Sequence[Sequence[tuple[str, int]]]
"""Of each state the characters that lead on, and where to."""


def verify_subscription_key(text: str) -> str:
    """Refuse what is no routing key."""
    split_hierarchical_key(text)
    return text


@lru_cache(maxsize=MEETINGS_KEPT)
def is_meant(wanted: str, key: bytes) -> bool:
    """Does a subscription by this routing key get a message with that one?"""
    if key == keccak256(wanted.encode()) or f"0x{key.hex()}" == wanted.lower():
        return True
    parts = [parse_routing_key(part) for part in wanted.split(".")]
    try:
        found = list(split_message_key(key))
    except ProofcastError:
        return False  # the rest of a message's key is for whoever it is passed on to, and may be anything
    return len(found) >= len(parts) and all(meet(part, other) for part, other in zip(parts, found, strict=False))


def split_message_key(key: bytes) -> Iterator[RoutingKey | Automaton]:
    """The parts of a message's routing key as the contract takes it."""
    while key:
        is_automaton = key[0] == VERSION
        length = get_automaton_length(key.ljust(3, b"\0")) if is_automaton else len(key.partition(b".")[0])
        part = key[:length]
        yield parse_automaton(part) if is_automaton else parse_routing_key(part.decode("latin-1"))
        key = key[length + 1 :]


def meet(wanted: RoutingKey, other: RoutingKey | Automaton) -> bool:
    """Is there a binding key that both mean? Follows all readings of the one along each state of the other."""
    moves, ends = list_automaton_moves(other) if isinstance(other, Automaton) else list_key_moves(other.text)
    first = START if isinstance(other, Automaton) else 0
    reached, waiting = {first: wanted.begin()}, [first]
    while waiting:
        state = waiting.pop()
        for characters, following in moves[state]:
            more = wanted.read(reached[state], characters) | reached.get(following, 0)
            if more != reached.get(following, 0):
                reached[following] = more
                waiting.append(following)
    return any(wanted.is_end(reached.get(end, 0)) for end in ends)


def list_key_moves(text: str) -> tuple[Moves, frozenset[int]]:
    """A state for each number of elements that have been read; `*` may read more."""
    moves: list[list[tuple[str, int]]] = [[] for _ in range(len(text) + 1)]
    for place, element in enumerate(text):
        moves[place].append((ALPHABET if element in "*#" else element, place + 1))
        if element == "*":
            moves[place + 1].append((ALPHABET, place + 1))
    return moves, frozenset({len(text)})


def list_automaton_moves(automaton: Automaton) -> tuple[Moves, frozenset[int]]:
    kinds: dict[int, str] = {}
    for character, kind in zip(ALPHABET, automaton.classes, strict=True):
        kinds[kind] = kinds.get(kind, "") + character
    return [list(list_row_moves(row, kinds)) for row in automaton.rows], automaton.accepting


def list_row_moves(row: bytes, kinds: Mapping[int, str]) -> Iterator[tuple[str, int]]:
    return ((characters, row[kind]) for kind, characters in kinds.items() if row[kind])

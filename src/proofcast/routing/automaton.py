"""A regular expression as the automaton that a contract runs: one table look-up per character of the key.

The bytes of an automaton, the same on and off the chain:

| bytes | what |
|---|---|
| 1 | version, 1 |
| 1 | number of classes `c`: characters that the automaton does not tell apart share one |
| 1 | number of states `n` |
| 63 | the class of every character, in the order `-`, `0-9`, `A-Z`, `a-z` |
| (n + 7) / 8 | one bit per state, lowest first: whether a key that ends here is accepted |
| n * c | of each state in turn, the next state for every class |

State 0 refuses and is never left; reading begins in state 1. The automaton is minimal and its states are numbered in
the order in which they are first reached, so equal languages have equal bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.routing.expression import Characters, Choice, Node, Repeat, parse_expression
from proofcast.routing.expression import Sequence as Parts
from proofcast.routing.key import ALPHABET

VERSION = 1
HEAD_BYTES = 66
"""Version, classes, states and the class of every character."""
STATES_MAX = 255
"""A state is a byte in the table."""
BYTES_MAX = 4096
"""What a message can bring as its routing key without becoming dear: at most 164,000 gas of calldata."""
PARTS_MAX = 4096
"""States before they are made deterministic; an expression with more has too many repetitions inside each other."""
READINGS_MAX = 1024
"""States before those that are alike become one; few expressions shrink from more to what fits."""
DEAD, START = 0, 1

Table = Sequence[Sequence[int]]
"""Of each state the next one, for every kind of character."""


@dataclass(frozen=True, slots=True)
class Automaton:
    classes: bytes
    accepting: frozenset[int]
    rows: tuple[bytes, ...]

    def accepts(self, key: str) -> bool:
        state = START
        for character in key:
            state = self.rows[state][self.classes[ALPHABET.index(character)]]
        return state in self.accepting

    def encode(self) -> bytes:
        flags = sum(1 << state for state in self.accepting)
        size = (len(self.rows) + 7) // 8
        head = bytes([VERSION, len(self.rows[0]), len(self.rows)])
        return head + self.classes + flags.to_bytes(size, "little") + b"".join(self.rows)


def compile_expression(text: str) -> Automaton:
    """The automaton of a regular expression; refused where it would be too large for a contract."""
    fragments = Fragments(parse_expression(text))
    kinds = fragments.find_kinds()
    table, accepting = minimise(*determine(fragments, "".join(dict.fromkeys(kinds.values()))))
    if len(table) > STATES_MAX:
        raise refuse_size(text, f"`{len(table)}` states", f"at most `{STATES_MAX}`")
    automaton = pack(table, accepting, kinds)
    size = len(automaton.encode())
    if size > BYTES_MAX:
        raise refuse_size(text, f"`{size}` bytes", f"at most `{BYTES_MAX}`")
    return automaton


def refuse_size(text: str, have: str, need: str) -> InvalidRequest:
    message = f"the automaton of `{text[:40]}` has {have}"
    return InvalidRequest(Reason.BAD_KEY, message, hint=f"write a simpler expression: {need} fit a contract")


def parse_automaton(data: bytes) -> Automaton:
    """Read the bytes of an automaton; those that a contract would refuse are refused."""
    classes, states = (data[1], data[2]) if len(data) > HEAD_BYTES else (0, 0)
    flags_end = HEAD_BYTES + (states + 7) // 8
    if not classes or states < 2 or data[0] != VERSION or len(data) != get_automaton_length(data):
        raise refuse_automaton(f"`{len(data)}` bytes are no automaton")
    rows = tuple(data[place : place + classes] for place in range(flags_end, len(data), classes))
    flags = int.from_bytes(data[HEAD_BYTES:flags_end], "little")
    if (
        max(data[3:HEAD_BYTES]) >= classes
        or max(map(max, rows)) >= states
        or flags >> states
        or flags & 1
        or any(rows[DEAD])
    ):
        raise refuse_automaton("an automaton leads outside of itself")
    return Automaton(data[3:HEAD_BYTES], frozenset(state for state in range(states) if flags >> state & 1), rows)


def get_automaton_length(data: bytes) -> int:
    """How long the automaton is that the data begin with, by its head."""
    classes, states = data[1], data[2]
    return HEAD_BYTES + (states + 7) // 8 + states * classes


def refuse_automaton(message: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, message, hint="compile the expression again")


class Fragments:
    """A non-deterministic automaton: steps that read a character, and steps that read none."""

    def __init__(self, node: Node) -> None:
        self.steps: list[list[tuple[frozenset[str], int]]] = [[]]
        self.leaps: list[list[int]] = [[]]
        self.end = self._append(node, 0)

    def _open(self) -> int:
        if len(self.steps) >= PARTS_MAX:
            raise InvalidRequest(Reason.BAD_KEY, "the expression repeats too much", hint="use smaller repetitions")
        self.steps.append([])
        self.leaps.append([])
        return len(self.steps) - 1

    def _append(self, node: Node, start: int) -> int:
        """Put what `node` reads behind `start` and return where it ends."""
        match node:
            case Characters(characters):
                end = self._open()
                self.steps[start].append((characters, end))
                return end
            case Parts(parts):
                for part in parts:
                    start = self._append(part, start)
                return start
            case Choice(options):
                ends = [self._append(option, start) for option in options]
                return self._join(ends)
            case Repeat(part, least, most):
                return self._append_repeat(part, least, most, start)

    def _append_repeat(self, part: Node, least: int, most: int, start: int) -> int:
        ends = [start] if least == 0 else []
        for count in range(1, most + 1):
            start = self._append(part, start)
            if count >= least:
                ends.append(start)
        return self._join(ends)

    def _join(self, ends: list[int]) -> int:
        end = self._open()
        for each in ends:
            self.leaps[each].append(end)
        return end

    def find_kinds(self) -> dict[str, str]:
        """Of each character the first one that no step tells apart from it."""
        readable = {characters for steps in self.steps for characters, _ in steps}
        firsts: dict[tuple[bool, ...], str] = {}
        return {each: firsts.setdefault(tuple(each in some for some in readable), each) for each in ALPHABET}

    def close(self, states: Iterable[int]) -> frozenset[int]:
        """These states and those reached from them without reading."""
        reached, waiting = set(states), list(states)
        while waiting:
            fresh = set(self.leaps[waiting.pop()]) - reached
            reached |= fresh
            waiting += fresh
        return frozenset(reached)


def determine(fragments: Fragments, characters: str) -> tuple[list[list[int]], set[int]]:
    """A deterministic table over these characters and its accepting states: each state is a set of fragments."""
    numbers = {frozenset[int](): DEAD, fragments.close([0]): START}
    table = [[DEAD] * len(characters)]
    waiting = [fragments.close([0])]
    while waiting:
        states = waiting.pop(0)
        row = []
        for character in characters:
            steps = [end for state in states for readable, end in fragments.steps[state] if character in readable]
            target = fragments.close(steps)
            if target not in numbers:
                numbers[target] = len(numbers)
                waiting.append(target)
            row.append(numbers[target])
        table.append(row)
        if len(numbers) > READINGS_MAX:
            raise InvalidRequest(Reason.BAD_KEY, "the expression has too many readings", hint="write a simpler one")
    return table, {number for states, number in numbers.items() if fragments.end in states}


def minimise(table: Table, accepting: set[int]) -> tuple[list[list[int]], set[int]]:
    """States that no key tells apart become one (Moore); numbered in the order they are reached."""
    blocks = [int(state in accepting) for state in range(len(table))]
    while True:
        signatures = [(blocks[state], *(blocks[target] for target in row)) for state, row in enumerate(table)]
        names = {signature: number for number, signature in enumerate(dict.fromkeys(signatures))}
        refined = [names[signature] for signature in signatures]
        if len(names) == len(set(blocks)):
            break
        blocks = refined
    firsts = {block: state for state, block in reversed(list(enumerate(refined)))}
    order = sorted(firsts, key=lambda block: firsts[block])
    numbers = {block: number for number, block in enumerate(order)}
    rows = [[numbers[refined[target]] for target in table[firsts[block]]] for block in order]
    return rows, {numbers[refined[state]] for state in accepting}


def pack(table: Table, accepting: set[int], kinds: dict[str, str]) -> Automaton:
    """Give kinds of characters that lead to the same states one class."""
    columns = dict(zip(dict.fromkeys(kinds.values()), zip(*table, strict=True), strict=True))
    numbers = {column: number for number, column in enumerate(dict.fromkeys(columns.values()))}
    rows = tuple(bytes(column[state] for column in numbers) for state in range(len(table)))
    return Automaton(bytes(numbers[columns[kind]] for kind in kinds.values()), frozenset(accepting), rows)

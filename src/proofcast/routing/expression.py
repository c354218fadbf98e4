"""Regular expressions over binding keys, read into a tree.

    expression  alternative | alternative | ...
    alternative repeated repeated ...
    repeated    item   item?   item{3}   item{2,5}
    item        a character of `a-z A-Z 0-9 -`, `.` for any of them, `[a-f0-9]`, `[^a-f]`, `(expression)`

Repetition is bounded, so that what an expression can match is finite and its automaton small. An expression must match
the whole key.
"""

from dataclasses import dataclass

from proofcast.errors import InvalidRequest, Reason
from proofcast.routing.key import ALPHABET

EXPRESSION_CHARACTERS_MAX = 256
REPEAT_MAX = 64
"""Of one `{n,m}`: more would not fit an automaton."""
DEPTH_MAX = 16
"""Of parentheses."""


@dataclass(frozen=True, slots=True)
class Characters:
    """Any one of these."""

    characters: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    part: "Node"
    least: int
    most: int


Node = Characters | Sequence | Choice | Repeat


def parse_expression(text: str) -> Node:
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        hint = f"write at most `{EXPRESSION_CHARACTERS_MAX}` characters"
        raise InvalidRequest(Reason.BAD_KEY, f"the expression has `{len(text)}` characters", hint=hint)
    reader = ExpressionReader(text)
    node = reader.read_choice(0)
    if reader.next:
        raise reader.refuse(f"`{reader.next}` closes nothing", "write `(` before `)`")
    return node


class ExpressionReader:
    """A place in the text that moves forward."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return self._text[self._place : self._place + 1]

    def take(self) -> str:
        taken = self.next
        self._place += 1
        return taken

    def skip(self, character: str) -> bool:
        is_there = self.next == character
        self._place += is_there
        return is_there

    def refuse(self, message: str, hint: str) -> InvalidRequest:
        return InvalidRequest(
            Reason.BAD_KEY, f"{message} (character {self._place + 1})", hint=hint, have=self._place + 1
        )

    def read_choice(self, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise self.refuse(f"more than `{DEPTH_MAX}` parentheses are open", "write a flatter expression")
        options = [self.read_sequence(depth)]
        while self.skip("|"):
            options.append(self.read_sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def read_sequence(self, depth: int) -> Node:
        parts = []
        while self.next not in ("", "|", ")"):
            parts.append(self.read_repeated(depth))
        if not parts:
            raise self.refuse(
                "nothing stands here", "write a character, `.`, a class or `(...)`; `?` makes it optional"
            )
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def read_repeated(self, depth: int) -> Node:
        item = self.read_item(depth)
        if self.skip("?"):
            return Repeat(item, 0, 1)
        return self.read_bounds(item) if self.skip("{") else item

    def read_bounds(self, item: Node) -> Repeat:
        least = self.read_number()
        most = self.read_number() if self.skip(",") else least
        if not self.skip("}") or not least <= most <= REPEAT_MAX or most == 0:
            hint = f"write `{{3}}` or `{{2,5}}`, from few to many and at most `{REPEAT_MAX}`"
            raise self.refuse("the repetition is no bounded one", hint)
        return Repeat(item, least, most)

    def read_number(self) -> int:
        digits = ""
        while self.next in "0123456789" and self.next:
            digits += self.take()
        if not digits or len(digits) > 3:
            raise self.refuse("a number is missing here", f"write one up to `{REPEAT_MAX}`")
        return int(digits)

    def read_item(self, depth: int) -> Node:
        if self.skip("("):
            inner = self.read_choice(depth + 1)
            if not self.skip(")"):
                raise self.refuse("a `(` is not closed", "write `)`")
            return inner
        if self.skip("["):
            return self.read_class()
        if self.skip("."):
            return Characters(frozenset(ALPHABET))
        return Characters(frozenset(self.read_character()))

    def read_character(self) -> str:
        if self.next not in ALPHABET or not self.next:
            hint = "use `a-z A-Z 0-9 -` and `. [ ] ( ) | ? { }`; repetition without bound is not possible"
            raise self.refuse(f"`{self.next}` cannot stand here", hint)
        return self.take()

    def read_class(self) -> Characters:
        is_negated, members = self.skip("^"), set[str]()
        while self.next != "]":
            first = self.read_character()
            last = first
            if self.next == "-" and self._text[self._place + 1 : self._place + 2] not in ("]", ""):
                self.take()
                last = self.read_character()
            members.update(character for character in ALPHABET if first <= character <= last)
        self.take()
        characters = frozenset(ALPHABET) - members if is_negated else frozenset(members)
        if not characters:
            raise self.refuse("the class has no character", "write e.g. `[a-f0-9]`, the lower end first")
        return Characters(characters)

"""Content predicates: `surf T/bali T/price R 1000 1500`, a conjunction of constraints, each on an attribute of its own.

What the letters mean is said in `constraint.py`, what the text looks like in `text.py`. Predicates that accept the same
events are equal and have the same text: topic words come first, then the other names, both in alphabetical order.

- `matches(predicate, event)`: every constraint is satisfied;
- `covers(wide, narrow)`: every event that `narrow` accepts, `wide` accepts;
- `overlaps(one, other)`: some event is accepted by both;
- `merge(one, other)`: the predicate that accepts what either accepts, where there is one; of events that hold an
  interval it may also accept one whose interval lies across both ranges;
- `widen(one, other, growth_max)`: a predicate that accepts whatever either accepts and not much more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import starmap
from math import prod

from proofcast.routing.attributes import EventAttributes
from proofcast.routing.constraint import Constraint, Topic, implies, is_satisfied, unite
from proofcast.routing.constraint import overlaps as constraints_overlap
from proofcast.routing.extent import compute_volume_together, find_hull, measure
from proofcast.routing.text import (
    format_constraint,
    format_word,
    parse_constraint,
    parse_word,
    refuse_text,
    split_parts,
)
from proofcast.routing.value import refuse_value

ATTRIBUTES_MAX = 16
"""Attributes of one predicate; one more is refused and never dropped, which would widen the subscription."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A conjunction in canonical order; made from constraints in any order."""

    constraints: tuple[tuple[str, Constraint], ...]
    by_name: Mapping[str, Constraint] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        by_name = dict(self.constraints)
        if len(by_name) != len(self.constraints):
            raise refuse_value("a predicate names an attribute twice", "write one constraint for each name")
        if not 0 < len(by_name) <= ATTRIBUTES_MAX:
            message = f"a predicate has `{len(by_name)}` attributes"
            raise refuse_value(message, f"write at least one and at most `{ATTRIBUTES_MAX}`")
        object.__setattr__(self, "constraints", tuple(sorted(by_name.items(), key=get_rank)))
        object.__setattr__(self, "by_name", by_name)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic words that an event must carry."""
        return tuple(name for name, constraint in self.constraints if isinstance(constraint, Topic))

    def __str__(self) -> str:
        return format_predicate(self)


def get_rank(item: tuple[str, Constraint]) -> tuple[bool, str]:
    name, constraint = item
    return not isinstance(constraint, Topic), name


def parse_predicate(text: str, attributes_max: int = ATTRIBUTES_MAX) -> Predicate:
    """Read a predicate's text; a protocol with a lower limit of attributes passes its own."""
    constraints: dict[str, Constraint] = {}
    for name_token, letter, *arguments in split_parts(text):
        name = parse_word(name_token)
        if name in constraints:
            raise refuse_text(name_token.position, f"`{name}` is named twice", "write one constraint for each name")
        if len(constraints) == attributes_max:
            message = f"`{name}` is attribute `{attributes_max + 1}`"
            raise refuse_text(name_token.position, message, f"write at most `{attributes_max}`")
        constraints[name] = parse_constraint(letter, arguments)
    return Predicate(tuple(constraints.items()))


def format_predicate(predicate: Predicate) -> str:
    """The canonical text, from which `parse_predicate` makes the same predicate."""
    return "/".join(f"{format_word(name)} {format_constraint(demand)}" for name, demand in predicate.constraints)


def matches(predicate: Predicate, attributes: EventAttributes) -> bool:
    held = attributes.by_name
    return all(is_satisfied(constraint, held.get(name)) for name, constraint in predicate.constraints)


def find_unsatisfied(predicate: Predicate, attributes: EventAttributes) -> list[tuple[str, Constraint]]:
    """The constraints because of which the event does not match; none where it does."""
    held = attributes.by_name
    return [(name, demand) for name, demand in predicate.constraints if not is_satisfied(demand, held.get(name))]


def covers(wide: Predicate, narrow: Predicate) -> bool:
    demands = narrow.by_name
    return all(name in demands and implies(demands[name], demand) for name, demand in wide.constraints)


def overlaps(one: Predicate, other: Predicate) -> bool:
    """Attributes are independent, so an event accepted by both exists unless they contradict each other on one name."""
    shared = one.by_name.keys() & other.by_name.keys()
    return all(constraints_overlap(one.by_name[name], other.by_name[name]) for name in shared)


def merge(one: Predicate, other: Predicate) -> Predicate | None:
    """The union, where it is a predicate: one covers the other, or they differ in one attribute only and it unites."""
    if covers(one, other):
        return one
    if covers(other, one):
        return other
    differing = find_differing(one, other)
    if differing is None or len(differing) != 1:
        return None
    united = unite(one.by_name[differing[0]], other.by_name[differing[0]])
    return None if united is None else replace(one, {differing[0]: united})


def find_differing(one: Predicate, other: Predicate) -> list[str] | None:
    """Names on which the two demand different things; None where one demands something of a name the other does not."""
    if one.by_name.keys() != other.by_name.keys():
        return None
    return [name for name, demand in one.constraints if other.by_name[name] != demand]


def replace(predicate: Predicate, changed: Mapping[str, Constraint]) -> Predicate:
    return Predicate(tuple({**predicate.by_name, **changed}.items()))


def widen(one: Predicate, other: Predicate, growth_max: Decimal | int) -> Predicate | None:
    """The narrowest predicate that covers both, if its volume is at most `growth_max` times that of both together.

    The volume is the product of the lengths of ranges and the sizes of sets on which the two differ. Where it has no
    measure (an open end, a prefix, a name that only one of them has) there is no bound and so no widening.
    """
    merged = merge(one, other)
    if merged is not None:
        return merged
    names = find_differing(one, other) or []
    pairs = [(one.by_name[name], other.by_name[name]) for name in names]
    hulls = [hull for hull in starmap(find_hull, pairs) if hull is not None]
    if not names or len(hulls) < len(names):
        return None
    volume = prod(map(measure, hulls), start=Decimal(1))
    if volume > growth_max * compute_volume_together(pairs):
        return None
    return replace(one, dict(zip(names, hulls, strict=True)))

"""Why an event does, or does not, match a predicate: one sentence for each constraint that decides."""

from proofcast.routing.attributes import EventAttributes
from proofcast.routing.constraint import Constraint, Held, Not, is_satisfied
from proofcast.routing.predicate import Predicate, find_unsatisfied
from proofcast.routing.text import format_constraint, format_held


def explain(predicate: Predicate, attributes: EventAttributes) -> list[str]:
    """Where the event does not match the constraints that it fails; else all, each with what satisfied it."""
    deciding = find_unsatisfied(predicate, attributes) or list(predicate.constraints)
    return [explain_constraint(name, demand, attributes.by_name.get(name)) for name, demand in deciding]


def explain_constraint(name: str, demand: Constraint, held: Held | None) -> str:
    has = f"has `{format_held(held)}`" if held is not None else "has nothing"
    if is_satisfied(demand, held):
        return f"`{name}` {has}, which satisfies `{format_constraint(demand)}`"
    if isinstance(demand, Not):
        return f"`{name}` {has}, which `{format_constraint(demand)}` excludes"
    return f"`{name}` {has}, but `{format_constraint(demand)}` is wanted"

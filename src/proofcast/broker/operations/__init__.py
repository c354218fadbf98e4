"""Every route of the API in one table: the documents are written from it and requests are checked by it.

A parameter that stands here is accepted, any other is refused by name, so that a misspelt filter never turns into
everything.
"""

from collections.abc import Mapping, Set

from proofcast.broker.operations import events, subscriptions
from proofcast.broker.operations.operation import Operation
from proofcast.errors import InvalidRequest, Reason

OPERATIONS: tuple[Operation, ...] = events.OPERATIONS + subscriptions.OPERATIONS
BY_ROUTE: Mapping[tuple[str, str], Operation] = {(one.method, one.path): one for one in OPERATIONS}


def verify_query(method: str, path: str, names: Set[str]) -> None:
    """Refuse a parameter that the route does not take; a page of ours, or a `HEAD`, takes whatever comes."""
    operation = BY_ROUTE.get((method, path))
    unknown = names - operation.query if operation else None
    if operation and unknown:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`{ascii(min(unknown)[:64])[1:-1]}` is no parameter of `{path}`",
            hint=f"known are {', '.join(sorted(operation.query)) or 'none'}",
        )

"""What one route takes and answers."""

from dataclasses import dataclass
from enum import StrEnum

from proofcast.broker.schemas import Schema, number, one_of, text

JSON, TEXT, BYTES, STREAM = "application/json", "text/plain", "application/octet-stream", "text/event-stream"
PAGE_MAX = 1_000
"""Items of one page."""


class Place(StrEnum):
    PATH = "path"
    QUERY = "query"
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    place: Place
    schema: Schema
    meaning: str


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    name: str
    """The function that answers."""
    meaning: str
    parameters: tuple[Parameter, ...] = ()
    answer: str = ""
    """Name of the schema of what is answered; empty where that is no JSON."""
    content_type: str = JSON
    statuses: tuple[int, ...] = (200,)
    """Of success."""
    body: str = ""
    """Name of the schema of what is sent; empty where nothing is."""
    is_body_needed: bool = True

    @property
    def query(self) -> frozenset[str]:
        return frozenset(one.name for one in self.parameters if one.place is Place.QUERY)


def query(name: str, schema: Schema, meaning: str) -> Parameter:
    return Parameter(name, Place.QUERY, schema, meaning)


EVIDENCE = (
    query("evidence", one_of(("0", "1")), "With evidence of every event."),
    query("linked", text(), "Block hashes that the reader can link to already."),
)
LIMIT = query("limit", number(minimum=1, maximum=PAGE_MAX), "Items of one page.")
EVENT_ID = Parameter("id", Place.PATH, text(), "As it was delivered, slashes and all.")

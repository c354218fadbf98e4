"""Events, the broker's state, its documents."""

from proofcast.broker.messages import FILTER
from proofcast.broker.operations.operation import (
    BYTES,
    EVENT_ID,
    EVIDENCE,
    LIMIT,
    STREAM,
    TEXT,
    Operation,
    Parameter,
    Place,
    query,
)
from proofcast.broker.schemas import CURSOR, hexadecimal, one_of, text
from proofcast.broker.selection import FIELDS
from proofcast.event import Finality

SELECTION = (
    query(
        "topic",
        text(maxLength=256),
        "A topic's id, or its name; `*` stands for any characters, `?` for any one. `exchange/` or `queue/` before it:"
        " messages of an exchange, or that reached a queue.",
    ),
    query("key", text(), "Routing key that must mean the event's: `*` is one or more characters, `#` one."),
    query("publisher", text(), "Account or contract that published: 0x and 40 digits."),
    query(
        "contract", text(), "Raw logs of this contract instead; goes with no `topic`, `key`, `publisher` or `where`."
    ),
    query("where", text(maxLength=1024), "Predicate over the payload's fields, e.g. `delay R 30 *`."),
)
START = query("start", text(), "`oldest`, `newest`, `block:N`, `sequence:N`, `time:2026-01-31T12:00:00Z`, or a cursor.")
FINALITY = query("finality", one_of(list(Finality)), "How settled a block must be; `finalized` is never undone.")
LAST_ID = Parameter("Last-Event-ID", Place.HEADER, CURSOR, "The last cursor that came; goes before `start`.")

IN_ADDRESS = tuple(
    query(name, text(), "Of a `start` in the address.")
    for name in (
        *("namespace", "name", "ephemeral", "autoack", "firstEvent", "finality", "readAhead", "batch", "withData"),
        *(f"{FILTER}{name}" for name in FIELDS),
    )
)

OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/api/v1", "list_routes", "What there is.", answer="Routes"),
    Operation("GET", "/api/v1/status", "show_status", "The newest verified block of each finality.", answer="Status"),
    Operation(
        "GET",
        "/api/v1/topics",
        "list_topics",
        "Topics seen so far, by id.",
        (query("after", hexadecimal(32), "Topics behind this one: `next` of the page before."), LIMIT),
        answer="Topics",
    ),
    Operation(
        "GET",
        "/api/v1/exchanges",
        "list_exchanges",
        "Exchanges with their bindings, queues with what they hold, as of the newest verified block.",
        answer="Exchanges",
    ),
    Operation(
        "GET",
        "/api/v1/events",
        "list_events",
        "One page of events, and the cursor behind it.",
        (*SELECTION, START, FINALITY, LIMIT, LAST_ID),
        answer="Page",
    ),
    Operation(
        "GET",
        "/api/v1/events/stream",
        "stream_events",
        "History, then what comes, as server-sent events; the id of each is a cursor.",
        (
            *SELECTION,
            START,
            FINALITY,
            LAST_ID,
            *EVIDENCE,
        ),
        content_type=STREAM,
    ),
    Operation(
        "GET",
        "/api/v1/events/{id}/evidence",
        "show_evidence",
        "What a stranger needs to check the event offline.",
        (EVENT_ID, query("trust", hexadecimal(32), "Hash of a block that the reader trusts.")),
        content_type=BYTES,
    ),
    Operation(
        "GET",
        "/api/v1/events/{id}/journey",
        "show_journey",
        "What became of a publication in its own transaction, contract by contract.",
        (EVENT_ID,),
        answer="Journey",
    ),
    Operation("GET", "/api/v1/peers", "show_peers", "Peers of the overlay beside this broker.", answer="Peers"),
    Operation(
        "GET",
        "/api/v1/ws",
        "converse",
        "A WebSocket; see the AsyncAPI document.",
        IN_ADDRESS,
        statuses=(101,),
    ),
    Operation("GET", "/api/v1/openapi.json", "show_openapi", "This document.", answer="Document"),
    Operation("GET", "/api/v1/asyncapi.json", "show_asyncapi", "The streams' document.", answer="Document"),
    Operation("GET", "/healthz", "show_health", "Is the broker alive?", answer="Health"),
    Operation("GET", "/readyz", "show_readiness", "Is its newest verified block young enough?", answer="Readiness"),
    Operation("GET", "/metrics", "show_metrics", "Figures for Prometheus.", content_type=TEXT),
)

"""The objects of the API as JSON Schema: OpenAPI, AsyncAPI and the tests take them from here."""

from collections.abc import Mapping, Sequence

from proofcast.broker.subscription import BATCH_SIZE_MAX, NAME, OPTION_LENGTH_MAX, Ordering, Status, Transport
from proofcast.errors import Reason
from proofcast.event import Finality

Schema = Mapping[str, object]


def text(meaning: str = "", **rules: object) -> Schema:
    return {"type": "string", **({"description": meaning} if meaning else {}), **rules}


def number(meaning: str = "", **rules: object) -> Schema:
    return {"type": "integer", "minimum": 0, **({"description": meaning} if meaning else {}), **rules}


def one_of(words: Sequence[str], meaning: str = "", **rules: object) -> Schema:
    return text(meaning, enum=[str(word) for word in words], **rules)


def record(fields: Mapping[str, Schema], *optional: str, **rules: object) -> Schema:
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": dict(fields), "required": required, **rules}


def several(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def refer(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def hexadecimal(length: int, meaning: str = "") -> Schema:
    return text(meaning, pattern=f"^0x[0-9a-f]{{{2 * length}}}$")


BYTES: Schema = text(pattern="^0x([0-9a-f]{2})*$")
CURSOR: Schema = text("A place on the chain: what a subscriber holds that has everything up to it.", maxLength=200)
FLAG: Schema = {"type": "boolean"}

EVENT = record(
    {
        "specversion": {"const": "1.0"},
        "id": text("Chain, block, log, block hash and step; sorts by place on the chain."),
        "source": text("CAIP-10 name of the contract.", pattern="^eip155:[0-9]+:0x[0-9a-f]{40}$"),
        "type": one_of(("org.proofcast.event.apply", "org.proofcast.event.undo")),
        "time": text("Of the block.", format="date-time"),
        "datacontenttype": text(),
        "topic": hexadecimal(32),
        "sequence": text("Per topic, without gaps; zeros for a raw log.", pattern="^[0-9]{20}$"),
        "eventkey": BYTES,
        "publisher": BYTES,
        "blocknumber": text(pattern="^[0-9]+$"),
        "blockhash": hexadecimal(32),
        "transactionindex": number(),
        "logindex": number(),
        "trust": one_of(("linked", "agreed", "sealed"), "Why the block is believed."),
        "finality": one_of(list(Finality)),
        "cursor": CURSOR,
        "turn": number("Counts how often the chain took it back and applied it again; absent the first time."),
        "repeated": text("`true` where this very delivery may have come before, unacknowledged."),
        "data_base64": text("The payload.", contentEncoding="base64"),
    },
    "turn",
    "repeated",
    description="A CloudEvents 1.0 event.",
)
BLOCK = record({"number": number(), "hash": hexadecimal(32)})
PROBLEM = record(
    {
        "type": text(),
        "title": text("One sentence that names the values."),
        "status": number(),
        "reason": text("For programs.", examples=[str(reason) for reason in Reason]),
        "hint": text("What to do next."),
    },
    description="RFC 9457.",
)
FILTER = record(
    {
        "topic": text(
            "A topic's id, or its name; `*` and `?` stand for any characters and any one. With `exchange/` or `queue/`"
            " before it: messages of an exchange, or that reached a queue."
        ),
        "key": text("Routing key that must mean the event's: `*` is one or more characters, `#` one."),
        "publisher": text("Account or contract that published."),
        "contract": text("Raw logs of this contract instead; goes with no other."),
        "where": text("Predicate over the payload's fields, e.g. `delay R 30 *`.", maxLength=1024),
    },
    "topic",
    "key",
    "publisher",
    "contract",
    "where",
    additionalProperties=False,
)
TERMS: dict[str, Schema] = {
    "filter": refer("Filter"),
    "finality": one_of(list(Finality), default="latest"),
    "transport": one_of(list(Transport), default="pull"),
    "batch_size": number(minimum=1, maximum=BATCH_SIZE_MAX),
    "ordering": one_of(list(Ordering), "What a failing delivery holds up."),
    "options": {"type": "object", "additionalProperties": text(maxLength=OPTION_LENGTH_MAX)},
}
SECRETS: dict[str, Schema] = {"secrets": several(text("`whsec_...` or `whsk_...`, newest first; never answered."))}
NAMED: dict[str, Schema] = {"name": text("Of the subscription.", pattern=f"^{NAME.pattern}$")}

FILLED = {
    **NAMED,
    **TERMS,
    "status": one_of(list(Status)),
    "reason": text("Why it is disabled."),
    "generation": number("Counts its changes."),
    "cursor": CURSOR,
    "pending": number("Offered, not yet acknowledged."),
    "dead_letters": number(),
    "acknowledged": number("Deliveries, ever."),
    "lag_blocks": number("Behind the newest verified block."),
    "failing_since": {"type": ["number", "null"]},
    "created_at": {"type": "number"},
    "secret": text("Made for a webhook without one; shown once."),
}
ATTEMPT = record(
    {
        "ordinal": number(),
        "attempt": number(),
        "event": text(),
        "outcome": text(),
        "detail": text(),
        "at": {"type": "number"},
    }
)
DEAD_LETTER = record(
    {
        "ordinal": number(),
        "event": refer("Event"),
        "reason": text(),
        "attempts": number(),
        "undone": FLAG,
        "at": {"type": "number"},
    }
)
START: Schema = text("`oldest`, `newest`, `block:N`, `sequence:N`, `time:...`, or a cursor.", default="newest")
EXCHANGES = record(
    {
        "contract": hexadecimal(20, "`Exchanges`."),
        "exchanges": several(
            record(
                {
                    "exchange": hexadecimal(32),
                    "owner": hexadecimal(20),
                    "name": text(),
                    "open": FLAG,
                    "messages": number(),
                    "bindings": several(record({"queue": hexadecimal(32), "key": text()})),
                }
            )
        ),
        "queues": several(
            record(
                {
                    "queue": hexadecimal(32),
                    "owner": hexadecimal(20),
                    "name": text(),
                    "condition": text("What a held message waits for; `at once` where nothing."),
                    "messages": number(),
                    "subscribers": number(),
                    "held": number(),
                    "held_value_wei": text(pattern="^[0-9]+$"),
                }
            )
        ),
    }
)
STORED: dict[str, Schema] = {
    "Subscription": record(FILLED, "secret"),
    "Subscriptions": record(
        {"subscriptions": several(refer("Subscription")), "next": {"type": ["string", "null"]}},
    ),
    "NewSubscription": record(
        NAMED | TERMS | SECRETS | {"start": START}, *TERMS, *SECRETS, "start", additionalProperties=False
    ),
    "ChangedSubscription": record(TERMS | SECRETS, *TERMS, *SECRETS, additionalProperties=False),
    "Rewind": record({"start": START}),
    "Test": record({"taken": FLAG, "outcome": text()}),
    "Fetched": record(
        {"events": several(refer("Event")), "cursor": {"type": ["string", "null"]}, "status": one_of(list(Status))}
    ),
    "Acknowledgement": record({"cursor": CURSOR}),
    "Acknowledged": record({"acknowledged": number()}),
    "Attempts": record({"deliveries": several(ATTEMPT), "next": {"type": ["integer", "null"]}}),
    "DeadLetters": record({"dead_letters": several(DEAD_LETTER), "next": {"type": ["integer", "null"]}}),
    "Redrive": record({"ordinals": {"type": ["array", "null"], "items": {"type": "integer"}}}, "ordinals"),
    "Redriven": record({"redriven": number(), "undone": number()}),
}

SCHEMAS: dict[str, Schema] = {
    **STORED,
    "Event": EVENT,
    "Block": BLOCK,
    "Problem": PROBLEM,
    "Filter": FILTER,
    "Page": record({"events": several(refer("Event")), "cursor": CURSOR, "complete": FLAG, "newest": refer("Block")}),
    "Routes": record({"version": text(), "routes": several(text())}),
    "Status": record(
        {
            "chain": number(),
            "blocks": record({str(level): refer("Block") for level in Finality}),
            "reorgs": several(record({"sequence": number(), "first": number("Undone block."), "last": number()})),
        },
    ),
    "Topics": record(
        {
            "topics": several(record({"topic": hexadecimal(32), "name": text()})),
            "next": {"type": ["string", "null"]},
        }
    ),
    "Exchanges": EXCHANGES,
    "Health": record({"status": text()}),
    "Readiness": record({"status": text(), "newest": refer("Block"), "age_s": {"type": "number"}}),
    "Journey": record(
        {
            "transaction": BYTES,
            "transaction_index": number(),
            "contracts": several(
                record(
                    {
                        "index": number("Of the subscription, or place in the queue."),
                        "contract": text("Empty where it is not known."),
                        "queue": text("That handed a message out; else empty."),
                        "outcome": text(),
                    }
                )
            ),
            "remaining": {"type": ["integer", "null"]},
            "held": several(hexadecimal(32)),
        }
    ),
    "Peers": record(
        {
            "peers": several(
                record(
                    {
                        "name": text("Of its folder."),
                        "problem": text("Why it cannot be asked; then nothing else is known."),
                        "peer": text("Its id on libp2p."),
                        "address": text(),
                        "known": number("Peers in its table."),
                        "delivered": number("Events since it started."),
                        "subscriptions": several(text()),
                        "neighbours": several(text("Id of a peer with an open stream.")),
                    },
                    "problem",
                    "peer",
                    "address",
                    "known",
                    "delivered",
                    "subscriptions",
                    "neighbours",
                )
            )
        }
    ),
    "Document": {"type": "object"},
}

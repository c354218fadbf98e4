"""Stored subscriptions: made and changed, fetched and acknowledged, their attempts and dead letters."""

from proofcast.broker.operations.operation import EVIDENCE, LIMIT, STREAM, Operation, Parameter, Place, query
from proofcast.broker.schemas import CURSOR, number, one_of, text
from proofcast.broker.subscription import BATCH_SIZE_MAX, Status, Transport

ALL = "/api/v1/subscriptions"
ONE = ALL + "/{name}"
NAME = Parameter("name", Place.PATH, text(), "Of the subscription.")
LAST_ID = Parameter("Last-Event-ID", Place.HEADER, CURSOR, "Acknowledges everything up to this cursor.")
ONCE = Parameter("Idempotency-Key", Place.HEADER, text(maxLength=128), "The same request may be sent again with it.")
LISTED = (
    query("after", text(), "Names behind this one: `next` of the page before."),
    LIMIT,
    query("transport", one_of(list(Transport)), "Only these."),
    query("status", one_of(list(Status)), "Only these."),
)
FETCHED = (
    NAME,
    query("limit", number(minimum=1, maximum=BATCH_SIZE_MAX), "Events at a time."),
    query("wait", number(maximum=30), "Seconds to wait for the first one."),
)
ATTEMPTS = (NAME, LIMIT, query("before", number(maximum=2**62), "Attempts before this one: `next` of the page before."))
DEAD = (NAME, LIMIT, query("after", number(maximum=2**62), "Letters behind this one: `next` of the page before."))

OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", ALL, "list_subscriptions", "By name.", LISTED, answer="Subscriptions"),
    Operation(
        "POST",
        ALL,
        "create_subscription",
        "201 where it is new, 200 where the same request made it before.",
        (ONCE,),
        answer="Subscription",
        statuses=(201, 200),
        body="NewSubscription",
    ),
    Operation("GET", ONE, "show_subscription", "Its terms and how far it is.", (NAME,), answer="Subscription"),
    Operation(
        "PATCH",
        ONE,
        "change_subscription",
        "What is given replaces what there is; the cursor stays.",
        (NAME,),
        answer="Subscription",
        body="ChangedSubscription",
    ),
    Operation("DELETE", ONE, "delete_subscription", "With everything it has.", (NAME,), statuses=(204,)),
    Operation("POST", ONE + "/pause", "pause_subscription", "Nothing is sent.", (NAME,), answer="Subscription"),
    Operation("POST", ONE + "/resume", "resume_subscription", "It goes on.", (NAME,), answer="Subscription"),
    Operation(
        "POST",
        ONE + "/rewind",
        "rewind_subscription",
        "It is delivered again from there, marked as repeated.",
        (NAME,),
        answer="Subscription",
        body="Rewind",
    ),
    Operation("POST", ONE + "/test", "test_subscription", "Send what is no event.", (NAME,), answer="Test"),
    Operation(
        "GET",
        ONE + "/events",
        "fetch_events",
        "What is next, again and marked until it is acknowledged.",
        FETCHED,
        answer="Fetched",
    ),
    Operation(
        "GET",
        ONE + "/stream",
        "stream_subscription",
        "What is next and what comes, as server-sent events.",
        (NAME, LAST_ID, *EVIDENCE),
        content_type=STREAM,
    ),
    Operation(
        "POST",
        ONE + "/ack",
        "acknowledge_events",
        "Everything up to the cursor is held; on disk when this is answered.",
        (NAME,),
        answer="Acknowledged",
        body="Acknowledgement",
    ),
    Operation("GET", ONE + "/deliveries", "list_deliveries", "Attempts, newest first.", ATTEMPTS, answer="Attempts"),
    Operation("GET", ONE + "/dead-letters", "list_dead_letters", "What was given up.", DEAD, answer="DeadLetters"),
    Operation(
        "POST",
        ONE + "/dead-letters/redrive",
        "redrive_dead_letters",
        "Send them again, all or those named; what the chain took back is dropped.",
        (NAME,),
        answer="Redriven",
        body="Redrive",
        is_body_needed=False,
    ),
)

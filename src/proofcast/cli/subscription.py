"""`proofcast subscription`: durable subscriptions of a broker."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import click
import httpx

from proofcast.broker.subscription import BATCH_SIZE_DEFAULT, BATCH_SIZE_MAX, Ordering, Transport
from proofcast.cli.output import JsonValue, emit, format_record, format_table, note
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.event import Finality

TIMEOUT_S = 30.0
PATH = "/api/v1/subscriptions"
BROKER = click.option("--broker", default="http://127.0.0.1:8080", show_default=True, help="Address of the broker.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print what the broker answers.")
NAME = click.argument("name")
COLUMNS = ("name", "status", "transport", "pending", "dead_letters", "acknowledged", "lag_blocks")


@click.group()
def subscription() -> None:
    """Make, look at, pause and redrive durable subscriptions; PROOFCAST_KEY holds a key where the broker wants one."""


@subscription.command()
@NAME
@click.option(
    "--topic",
    default="",
    help="Id or name of a topic, with `*` and `?`; `exchange/NAME` and `queue/NAME` for messages.",
)
@click.option("--key", default="", help="Routing key that must mean the event's, e.g. `colour-bl*`.")
@click.option("--publisher", default="", help="Account or contract that publishes.")
@click.option("--contract", default="", help="Raw logs of this contract instead of a topic's events.")
@click.option("--where", default="", help="Predicate over the payload's fields, e.g. `delay R 30 *`.")
@click.option("--start", default="newest", show_default=True, help="`oldest`, `block:N`, `time:...` or a cursor.")
@click.option("--finality", type=click.Choice([one.value for one in Finality]), default="latest", show_default=True)
@click.option("--transport", type=click.Choice([one.value for one in Transport]), default="pull", show_default=True)
@click.option("--ordering", type=click.Choice([one.value for one in Ordering]), default="topic", show_default=True)
@click.option("--batch-size", type=click.IntRange(1, BATCH_SIZE_MAX), default=BATCH_SIZE_DEFAULT, show_default=True)
@click.option("--url", default="", help="Of a webhook's receiver.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="Of the transport; repeat.")
@click.option(
    "--secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Key of the webhook, one per line, newest first; without it the broker makes one and shows it.",
)
@BROKER
@AS_JSON
def create(
    name: str,
    topic: str,
    key: str,
    publisher: str,
    contract: str,
    where: str,
    start: str,
    finality: str,
    transport: str,
    ordering: str,
    batch_size: int,
    url: str,
    options: tuple[str, ...],
    secret_file: Path | None,
    broker: str,
    as_json: bool,
) -> None:
    """Make the subscription NAME. It begins with what comes from now on, unless --start says otherwise."""
    selection = {"topic": topic, "key": key, "publisher": publisher, "contract": contract, "where": where}
    chosen = dict(parse_option(one) for one in options) | ({"url": url} if url else {})
    body: dict[str, object] = {
        "name": name,
        "filter": {word: value for word, value in selection.items() if value},
        "start": start,
        "finality": finality,
        "transport": transport,
        "ordering": ordering,
        "batch_size": batch_size,
        "options": chosen,
    }
    if secret_file:
        body["secrets"] = secret_file.read_text().split()
    show_one(ask(broker, "POST", PATH, body), as_json)


@subscription.command(name="list")
@BROKER
@AS_JSON
def list_all(broker: str, as_json: bool) -> None:
    """List every subscription."""
    found: list[JsonValue] = []
    after: JsonValue = ""
    while after is not None:
        page = ask(broker, "GET", f"{PATH}?after={quote(str(after))}")
        found += get_list(page, "subscriptions")
        after = page["next"]
    rows = [[str(one[name]) for name in COLUMNS] for one in found if isinstance(one, dict)]
    emit(as_json, found, format_table([COLUMNS, *rows]) if rows else "no subscriptions")


@subscription.command()
@NAME
@click.option("--deliveries", type=click.IntRange(0, 1_000), default=0, help="Show so many attempts too.")
@BROKER
@AS_JSON
def show(name: str, deliveries: int, broker: str, as_json: bool) -> None:
    """Show one subscription: how far it is, what is pending, what failed."""
    found = ask(broker, "GET", get_path(name))
    if deliveries:
        page = ask(broker, "GET", f"{get_path(name)}/deliveries?limit={deliveries}")
        found["deliveries"] = page["deliveries"]
    show_one(found, as_json)


@subscription.command()
@NAME
@BROKER
@AS_JSON
def pause(name: str, broker: str, as_json: bool) -> None:
    """Deliver nothing until it is resumed; nothing is lost meanwhile."""
    show_one(ask(broker, "POST", get_path(name) + "/pause"), as_json)


@subscription.command()
@NAME
@BROKER
@AS_JSON
def resume(name: str, broker: str, as_json: bool) -> None:
    """Go on where it was paused or disabled."""
    show_one(ask(broker, "POST", get_path(name) + "/resume"), as_json)


@subscription.command()
@NAME
@click.argument("start")
@BROKER
@AS_JSON
def rewind(name: str, start: str, broker: str, as_json: bool) -> None:
    """Deliver again from START: `oldest`, `newest`, `block:N`, `time:...` or a cursor; repeated events are marked."""
    show_one(ask(broker, "POST", get_path(name) + "/rewind", {"start": start}), as_json)


@subscription.command()
@NAME
@BROKER
def delete(name: str, broker: str) -> None:
    """End it, with everything that is pending."""
    ask(broker, "DELETE", get_path(name))
    note(f"`{name}` is deleted")


@subscription.command()
@NAME
@BROKER
@AS_JSON
def redrive(name: str, broker: str, as_json: bool) -> None:
    """Send its dead letters again; what the chain took back meanwhile is dropped."""
    found = ask(broker, "POST", get_path(name) + "/dead-letters/redrive")
    emit(as_json, found, f"{found['redriven']} sent again, {found['undone']} dropped because the chain took them back")


@subscription.command()
@NAME
@BROKER
@AS_JSON
def test(name: str, broker: str, as_json: bool) -> None:
    """Send the receiver something that is no event, to see whether it arrives."""
    found = ask(broker, "POST", get_path(name) + "/test")
    emit(as_json, found, str(found["outcome"]))


# --- the broker


def ask(broker: str, method: str, path: str, body: object = None) -> dict[str, JsonValue]:
    key = os.environ.get("PROOFCAST_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        response = httpx.request(method, broker + path, json=body, headers=headers, timeout=TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(
            Reason.NO_ANSWER,
            f"the broker `{broker}` does not answer (`{error}`)",
            hint="start it with `proofcast broker serve`, or name another one with `--broker`",
        ) from error
    found = parse_answer(broker, response)
    if response.status_code >= 400:
        raise parse_problem(response.status_code, found)
    return found


def parse_answer(broker: str, response: httpx.Response) -> dict[str, JsonValue]:
    try:
        found = json.loads(response.content or b"{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unavailable(Reason.NO_ANSWER, f"`{broker}` is no broker", hint="name another address with `--broker`")
    return found


def parse_problem(status: int, found: Mapping[str, JsonValue]) -> Exception:
    """As the broker told it, of the same class."""
    kind = Unavailable if status in (429, 503) else InvalidRequest
    reason = found.get("reason")
    known = Reason(reason) if reason in list(Reason) else Reason.BAD_ARGUMENT
    return kind(known, str(found.get("title", status)), hint=str(found.get("hint", "")))


def get_list(found: Mapping[str, JsonValue], name: str) -> list[JsonValue]:
    items = found[name]
    assert isinstance(items, list), name
    return items


def get_path(name: str) -> str:
    return f"{PATH}/{quote(name, safe='')}"


def parse_option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidRequest(Reason.BAD_ARGUMENT, f"`{text}` is no option", hint="write NAME=VALUE")
    return name, value


def show_one(found: dict[str, JsonValue], as_json: bool) -> None:
    emit(as_json, found, format_record({name: show_value(value) for name, value in found.items()}))


def show_value(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)

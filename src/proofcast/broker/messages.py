"""The messages of a WebSocket, from JSON and to JSON; `conversation.py` says what they are for."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from proofcast.broker.selection import Selection, parse_selection
from proofcast.broker.start import DEFAULT, Start, parse_start
from proofcast.errors import InvalidRequest, ProofcastError, Reason
from proofcast.event import Finality

READ_AHEAD_MAX, READ_AHEAD_DEFAULT = 256, 50
"""Events of one batch."""
NAME_LENGTH_MAX = 64
NAMESPACE = "default"
"""The only one: a broker serves one chain, and topics have names of their own."""

FIELDS = {
    "start": frozenset({"type", "namespace", "name", "ephemeral", "autoack", "filter", "options"}),
    "ack": frozenset({"type", "id", "subscription"}),
    "nack": frozenset({"type", "id", "subscription"}),
}
OPTIONS = frozenset({"firstEvent", "finality", "readAhead", "batch", "withData"})
"""The last two are accepted of clients that ask for what always is."""

FILTER = "filter."
"""Before what is selected by, in an address."""

Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """A subscription that lives as long as its connection."""

    selection: Selection
    start: Start
    finality: Finality


@dataclass(frozen=True, slots=True)
class Begin:
    """Start sending; without `ephemeral` it is a stored subscription."""

    name: str
    read_ahead: int
    autoack: bool
    ephemeral: Ephemeral | None


# --- reading


def parse_object(data: str) -> Fields:
    try:
        found = orjson.loads(data)
    except ValueError as error:
        raise refuse(f"`{shorten(data)}` is no JSON", "send one JSON object per message") from error
    if not isinstance(found, dict):
        raise refuse(f"`{shorten(data)}` is no JSON object", "send one JSON object per message")
    return found


def find_start(query: Mapping[str, str]) -> Fields | None:
    """The `start` that an address holds; None where it holds none."""
    if not query:
        return None
    flags = {name: query[name] in ("", "true") for name in ("ephemeral", "autoack") if name in query}
    names = {name: query[name] for name in ("namespace", "name") if name in query}
    selected = {name.removeprefix(FILTER): value for name, value in query.items() if name.startswith(FILTER)}
    options = {
        name: int(value) if name == "readAhead" and value.isascii() and value.isdigit() else value
        for name, value in query.items()
        if name not in flags | names and not name.startswith(FILTER)
    }
    return {"type": "start", **flags, **names} | ({"filter": selected} if selected else {}) | {"options": options}


def parse_begin(message: Fields) -> Begin:
    options, is_ephemeral = get_object(message, "options"), get_flag(message, "ephemeral")
    verify_known("options", options, OPTIONS)
    name, namespace = get_text(message, "name"), get_text(message, "namespace") or NAMESPACE
    if namespace != NAMESPACE:
        raise refuse(f"there is no namespace `{shorten(namespace)}`", f"the only one is `{NAMESPACE}`")
    if len(name) > NAME_LENGTH_MAX:
        raise refuse(f"a name of `{len(name)}` characters is too long", f"at most {NAME_LENGTH_MAX}")
    if not name and not is_ephemeral:
        raise refuse("neither `name` nor `ephemeral` is given", "name a subscription, or start an ephemeral one")
    if not is_ephemeral and ("filter" in message or "firstEvent" in options or "finality" in options):
        raise refuse("what a stored subscription selects is stored", "change it, or start an ephemeral one")
    ephemeral = parse_ephemeral(get_object(message, "filter"), options) if is_ephemeral else None
    return Begin(name, get_read_ahead(options), get_flag(message, "autoack"), ephemeral)


def parse_ephemeral(selected: Fields, options: Fields) -> Ephemeral:
    texts = {name: get_text(selected, name) for name in selected}
    level = get_text(options, "finality") or Finality.LATEST
    if level not in list(Finality):
        raise refuse(f"`{shorten(level)}` is no finality", f"known are {', '.join(Finality)}")
    return Ephemeral(parse_selection(texts), parse_start(get_text(options, "firstEvent") or DEFAULT), Finality(level))


def get_read_ahead(options: Fields) -> int:
    count = options.get("readAhead", READ_AHEAD_DEFAULT)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= READ_AHEAD_MAX:
        raise refuse(f"`{shorten(count)}` is no number to read ahead", f"write 1 to {READ_AHEAD_MAX}")
    return count


def get_text(fields: Fields, name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise refuse(f"`{name}` is `{shorten(value)}`", "write it as text")
    return value


def get_flag(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise refuse(f"`{name}` is `{shorten(value)}`", "write `true` or `false`")
    return value


def get_object(fields: Fields, name: str) -> Fields:
    value = fields.get(name, {})
    if not isinstance(value, dict):
        raise refuse(f"`{name}` is `{shorten(value)}`", "write it as an object")
    return value


def verify_known(what: str, fields: Fields, known: frozenset[str]) -> None:
    unknown = fields.keys() - known
    if unknown:
        raise refuse(f"`{shorten(min(unknown))}` means nothing in `{what}`", f"known are {', '.join(sorted(known))}")


def shorten(value: object) -> str:
    return ascii(str(value)[:80])[1:-1]


def refuse(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)


# --- writing


def encode_batch(name: str, batch_id: str, events: list[bytes]) -> str:
    """`events` are CloudEvents objects as JSON."""
    head = orjson.dumps({"type": "event_batch", "id": batch_id, "subscription": describe(name)})
    return (head[:-1] + b',"events":[' + b",".join(events) + b"]}").decode()


def encode_notice(kind: str, name: str, number: int, block_hash: bytes) -> str:
    """`heartbeat` or `rewind`."""
    block = {"number": number, "hash": f"0x{block_hash.hex()}"}
    return orjson.dumps({"type": kind, "subscription": describe(name), "block": block}).decode()


def encode_error(error: ProofcastError) -> str:
    fields = {"type": "protocol_error", "error": str(error), "reason": str(error.reason), "hint": error.hint}
    return orjson.dumps(fields).decode()


def describe(name: str) -> dict[str, str]:
    return {"namespace": NAMESPACE, "name": name}

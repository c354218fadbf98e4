"""Durable subscriptions: made, looked at, changed, paused, rewound, deleted."""

import hashlib
import secrets
from base64 import b64encode
from dataclasses import replace
from typing import Any

import orjson
from aiohttp import web

from proofcast.broker import start as starts
from proofcast.broker.io.door import CUSTODY, DELIVERIES, STORE, answer, read_limit
from proofcast.broker.start import parse_start
from proofcast.broker.subscription import Status, Subscription, Terms, Transport
from proofcast.broker.terms import format_terms, parse_name, parse_terms, parse_word
from proofcast.errors import InvalidRequest, Reason

SECRET_LENGTH = 32
IDEMPOTENCY_KEY_LENGTH_MAX = 128
COLLECTION = "/api/v1/subscriptions"
ITEM = COLLECTION + "/{name}"


def add_routes(application: web.Application) -> None:
    router = application.router
    router.add_get(COLLECTION, list_all)
    router.add_post(COLLECTION, create)
    router.add_get(ITEM, show)
    router.add_patch(ITEM, change)
    router.add_delete(ITEM, delete)
    router.add_post(ITEM + "/pause", pause)
    router.add_post(ITEM + "/resume", resume)
    router.add_post(ITEM + "/rewind", rewind)
    router.add_post(ITEM + "/test", ping)


async def create(request: web.Request) -> web.Response:
    """201 where it is new, 200 where the same request with the same `Idempotency-Key` made it before."""
    found = await read_object(request)
    name = parse_name(str(found.pop("name", "")))
    start = parse_start(str(found.pop("start", starts.DEFAULT)))
    terms, generated = add_secret(parse_terms(found))
    verify_terms(request, terms)
    place = request.app[DELIVERIES].find_place(start, terms.finality, terms.selection)
    digest = hashlib.sha256(await request.read()).digest()
    made, is_new = await request.app[STORE].create_once(name, terms, place, read_idempotency_key(request), digest)
    request.app[CUSTODY].notice()
    shown = describe(request, made) | ({"secret": generated} if generated and is_new else {})
    return answer(shown, 201 if is_new else 200)


async def list_all(request: web.Request) -> web.Response:
    query = request.query
    transport, status = query.get("transport", ""), query.get("status", "")
    if transport:
        parse_word("transport", transport, Transport)
    if status:
        parse_word("status", status, Status)
    limit = read_limit(query)
    found = await request.app[STORE].find_all(query.get("after", ""), limit, transport, status)
    following = found[-1].name if len(found) == limit else None
    return answer({"subscriptions": [describe(request, one) for one in found], "next": following})


async def show(request: web.Request) -> web.Response:
    return answer(describe(request, await request.app[STORE].get(request.match_info["name"])))


async def change(request: web.Request) -> web.Response:
    """Fields that are given replace those there are; the cursor stays."""
    found = await read_object(request)
    name = request.match_info["name"]
    former = await request.app[STORE].get(name)
    terms = parse_terms(format_terms(former.terms) | found)
    terms = terms if "secrets" in found else replace(terms, secrets=former.terms.secrets)
    verify_terms(request, terms)
    changed = await request.app[STORE].change(name, terms)
    request.app[CUSTODY].notice()
    return answer(describe(request, changed))


async def delete(request: web.Request) -> web.Response:
    await request.app[STORE].delete(request.match_info["name"])
    request.app[CUSTODY].notice()
    return web.Response(status=204)


async def pause(request: web.Request) -> web.Response:
    changed = await request.app[STORE].pause(request.match_info["name"])
    request.app[CUSTODY].notice()
    return answer(describe(request, changed))


async def resume(request: web.Request) -> web.Response:
    changed = await request.app[STORE].resume(request.match_info["name"])
    request.app[CUSTODY].notice()
    return answer(describe(request, changed))


async def rewind(request: web.Request) -> web.Response:
    """Deliver again from `start`: the subscriber drops what it holds beyond, and gets it marked as repeated."""
    found = await read_object(request)
    start = parse_start(str(found.get("start", "")))
    changed = await request.app[DELIVERIES].rewind(request.match_info["name"], start)
    request.app[CUSTODY].notice()
    return answer(describe(request, changed))


async def ping(request: web.Request) -> web.Response:
    """Send something that is no event, to see whether it arrives."""
    found = await request.app[STORE].get(request.match_info["name"])
    outcome = await request.app[CUSTODY].get_carrier(found).ping(found)
    return answer({"taken": outcome == "taken", "outcome": outcome})


# --- requests and answers


def verify_terms(request: web.Request, terms: Terms) -> None:
    carrier = request.app[CUSTODY].find_carrier(terms.transport)
    if carrier is not None:
        carrier.verify_terms(terms)
    elif terms.options or terms.secrets:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, f"`{terms.transport}` has no options and no secrets", hint="leave them out"
        )


def add_secret(terms: Terms) -> tuple[Terms, str]:
    """A webhook without a key gets one; it is shown once."""
    if terms.transport is not Transport.WEBHOOK or terms.secrets:
        return terms, ""
    secret = "whsec_" + b64encode(secrets.token_bytes(SECRET_LENGTH)).decode()
    return replace(terms, secrets=(secret,)), secret


def read_idempotency_key(request: web.Request) -> str:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > IDEMPOTENCY_KEY_LENGTH_MAX or not key.isascii():
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"the idempotency key has `{len(key)}` characters",
            hint=f"write at most {IDEMPOTENCY_KEY_LENGTH_MAX} of ASCII",
        )
    return key


async def read_object(request: web.Request) -> dict[str, Any]:
    try:
        found = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise refuse_body(str(error)) from error
    if not isinstance(found, dict):
        raise refuse_body("it is no object")
    return found


def refuse_body(fault: str) -> InvalidRequest:
    return InvalidRequest(
        Reason.BAD_ARGUMENT,
        f"the body is no JSON object (`{fault}`)",
        hint="GET /api/v1/openapi.json describes it",
    )


def describe(request: web.Request, found: Subscription) -> dict[str, object]:
    return {
        "name": found.name,
        **format_terms(found.terms),
        "status": str(found.status),
        "reason": found.reason,
        "generation": found.generation,
        "cursor": found.cursor,
        "pending": found.pending,
        "dead_letters": found.dead,
        "acknowledged": found.acknowledged,
        "lag_blocks": request.app[DELIVERIES].compute_lag(found),
        "failing_since": found.failing_since,
        "created_at": found.created_at,
    }

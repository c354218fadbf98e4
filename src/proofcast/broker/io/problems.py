"""Errors at the HTTP door: problem+json with our own reasons, whatever went wrong."""

from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web

from proofcast.errors import InvalidInput, InvalidRequest, Misbehaviour, ProofcastError, Reason, Unavailable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

STATUSES: tuple[tuple[type[ProofcastError], int], ...] = (
    (InvalidRequest, 400),
    (Misbehaviour, 409),
    (InvalidInput, 422),
    (Unavailable, 503),
)
REASON_STATUSES = {
    Reason.ALREADY_EXISTS: 409,
    Reason.UNKNOWN_SUBSCRIPTION: 404,
    Reason.NOT_PENDING: 409,
    Reason.FENCED: 409,
    Reason.NO_ACCESS: 401,
    Reason.NOT_ALLOWED: 403,
    Reason.TOO_MANY: 429,
}
"""Where HTTP has a word of its own for a reason."""
RETRY_AFTER_S = 1
CONTENT_TYPE = "application/problem+json"


@web.middleware
async def answer_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every foreseen error into an answer; one that comes after a stream began ends the stream."""
    try:
        return await handler(request)
    except ProofcastError as error:
        return build_problem(get_status(error), str(error.reason), str(error), error.hint)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        what = f"`{request.method} {request.path}` is answered with {error.reason}"
        return build_problem(error.status, "http", what, "GET /api/v1 lists what there is")


def get_status(error: ProofcastError) -> int:
    by_class = next(status for kind, status in STATUSES if isinstance(error, kind))
    return REASON_STATUSES.get(error.reason, by_class)


def describe_problem(error: ProofcastError) -> dict[str, object]:
    return build_body(get_status(error), str(error.reason), str(error), error.hint)


def build_body(status: int, reason: str, message: str, hint: str) -> dict[str, object]:
    return {"type": f"urn:proofcast:{reason}", "title": message, "status": status, "reason": reason, "hint": hint}


def build_problem(status: int, reason: str, message: str, hint: str) -> web.Response:
    body = build_body(status, reason, message, hint)
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in (429, 503) else {}
    return web.Response(status=status, body=orjson.dumps(body), content_type=CONTENT_TYPE, headers=headers)

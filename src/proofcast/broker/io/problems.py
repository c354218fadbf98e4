"""Errors at the HTTP door: problem+json with our own reasons, whatever went wrong."""

from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web

from proofcast.errors import InvalidInput, InvalidRequest, Misbehaviour, ProofcastError, Unavailable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

STATUSES: tuple[tuple[type[ProofcastError], int], ...] = (
    (InvalidRequest, 400),
    (Misbehaviour, 409),
    (InvalidInput, 422),
    (Unavailable, 503),
)
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
    return next(status for kind, status in STATUSES if isinstance(error, kind))


def build_problem(status: int, reason: str, message: str, hint: str) -> web.Response:
    body = {"type": f"urn:proofcast:{reason}", "title": message, "status": status, "reason": reason, "hint": hint}
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else {}
    return web.Response(status=status, body=orjson.dumps(body), content_type=CONTENT_TYPE, headers=headers)

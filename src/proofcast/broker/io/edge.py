"""What stands between the network and the routes: proxies, origins, traces, and a line per request in the log."""

import time

from aiohttp import web

from proofcast.broker.edge import Edge, find_client, find_traceparent, is_allowed, verify_origin
from proofcast.broker.io.logs import LOG
from proofcast.broker.io.problems import Handler

EDGE = web.AppKey("edge", Edge)
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, traceparent",
    "Access-Control-Max-Age": "600",
}
EXPOSED = "Retry-After, traceparent"
"""Headers of answers that a page of an allowed origin may read."""


@web.middleware
async def believe_proxies(request: web.Request, handler: Handler) -> web.StreamResponse:
    """From here on the request says who really asks."""
    client = find_client(request.app[EDGE], request.remote or "", request.headers)
    if client.address == (request.remote or ""):
        return await handler(request)
    believed = request.clone(
        remote=client.address, scheme=client.scheme or request.scheme, host=client.host or request.host
    )
    return await handler(believed)


@web.middleware
async def check_origins(request: web.Request, handler: Handler) -> web.StreamResponse:
    origin, is_upgrade = request.headers.get("Origin", ""), "Upgrade" in request.headers
    verify_origin(request.app[EDGE], origin, get_own_origin(request), request.method, is_upgrade)
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        return web.Response(status=204)
    return await handler(request)


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """To everything that is answered, streams and refusals too."""
    trace = find_traceparent(request.headers.get("traceparent", ""))
    if trace:
        response.headers["traceparent"] = trace
    origin, edge = request.headers.get("Origin", ""), request.app[EDGE]
    if edge.origins:
        response.headers.add("Vary", "Origin")
    if origin and origin != get_own_origin(request) and is_allowed(edge, origin, ""):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = EXPOSED
        if request.method == "OPTIONS":
            response.headers.update(PREFLIGHT)


def get_own_origin(request: web.Request) -> str:
    return f"{request.scheme}://{request.host}"


@web.middleware
async def log_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """One line when a request ends; the path without its query, which may hold what is nobody's business."""
    began, status = time.monotonic(), 0
    try:
        response = await handler(request)
        status = response.status
        return response
    finally:
        LOG.info(
            "request",
            extra={
                "method": request.method,
                "path": request.path,
                "status": status,
                "duration_ms": round(1e3 * (time.monotonic() - began), 1),
                "trace": find_traceparent(request.headers.get("traceparent", "")) or "",
            },
        )

"""The API's own description, for people and for generators of clients; and the check that requests keep to it."""

from aiohttp import web

from proofcast import __version__
from proofcast.broker.asyncapi import build_asyncapi
from proofcast.broker.io.door import answer
from proofcast.broker.io.problems import Handler
from proofcast.broker.openapi import build_openapi
from proofcast.broker.operations import OPERATIONS, verify_query


def add_routes(application: web.Application) -> None:
    application.router.add_get("/api/v1/openapi.json", show_openapi)
    application.router.add_get("/api/v1/asyncapi.json", show_asyncapi)


async def show_openapi(request: web.Request) -> web.Response:
    return answer(build_openapi(__version__, OPERATIONS))


async def show_asyncapi(request: web.Request) -> web.Response:
    return answer(build_asyncapi(__version__))


@web.middleware
async def check_parameters(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a misspelt parameter rather than answer as if it had not been given."""
    resource = request.match_info.route.resource
    if resource is not None:
        verify_query(request.method, resource.canonical, set(request.query))
    return await handler(request)

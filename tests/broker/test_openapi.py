"""The documents say what the broker does: every route is in them, every answer and message fits its schema."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import aiohttp
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from proofcast.broker.asyncapi import SPOKEN, STREAMED, TOLD, build_asyncapi
from proofcast.broker.io.http import build_runner
from proofcast.broker.openapi import build_openapi
from proofcast.broker.operations import OPERATIONS
from proofcast.testing.broker.publications import Publications
from proofcast.testing.broker.running import ChainFeed
from proofcast.testing.broker.serving import TOPICS, open_broker
from proofcast.testing.feed.publishing import PublishingChain
from proofcast.testing.feed.story import START

SEED = 2026
EXAMPLES = 8
"""For each operation, right ones and wrong ones: some seconds in all."""
ENDLESS = {"stream_events", "stream_subscription", "converse"}
"""Whose answers do not end; `test_malformed.py` is for them."""
BOMBARDED = {
    GenerationMode.POSITIVE: {one.name for one in OPERATIONS} - ENDLESS,
    GenerationMode.NEGATIVE: {one.name for one in OPERATIONS if one.query or one.body} - ENDLESS,
}
"""Any text may stand in a path, so only what takes more can be asked wrongly."""
EXISTING = "existing"
"""A subscription."""
PAGES = ("/", "/style.css", "/script.js")
"""Of the dashboard, which is no part of the API."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DOCUMENT = build_openapi("1", OPERATIONS)
load_all_checks()


def validate(value: object, schema: object, document: dict[str, object]) -> None:
    Draft202012Validator({**schema, "components": document["components"]}).validate(value)


def test_openapi_document_is_valid() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_every_route_is_in_the_document_and_nothing_else(tmp_path: Path) -> None:
    routes = build_runner(tmp_path, TOPICS).app.router.routes()
    found = {
        (route.method, route.resource.canonical)
        for route in routes
        if route.resource and route.method != "HEAD" and route.resource.canonical not in PAGES
    }
    assert found == {(one.method, one.path) for one in OPERATIONS}


def test_operation_names_are_unique() -> None:
    names = [one.name for one in OPERATIONS]
    assert sorted(names) == sorted(set(names))


def list_references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from list_references(inner)


@pytest.mark.parametrize("document", [DOCUMENT, build_asyncapi("1")], ids=["openapi", "asyncapi"])
def test_every_reference_leads_somewhere(document: dict[str, object]) -> None:
    references = set(list_references(json.loads(json.dumps(document))))
    assert references
    for reference in references:
        found: object = document
        for part in reference.removeprefix("#/").split("/"):
            assert isinstance(found, dict)
            assert part in found, reference
            found = found[part]


def test_misspelt_parameter_is_refused_by_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        async with open_broker(tmp_path) as url, aiohttp.request("GET", url + "/api/v1/events?topik=x") as response:
            assert response.status == 400
            problem = await response.json(content_type=None)
            assert "`topik` is no parameter" in problem["title"]
            assert "topic" in problem["hint"]

    asyncio.run(scenario())


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """A broker in a thread of its own, for clients that block."""
    loop, address = asyncio.new_event_loop(), []
    ready, ended = threading.Event(), asyncio.Event()

    async def run() -> None:
        async with open_broker(folder) as url:
            address.append(url)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    ready.wait()
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_is_answered_otherwise_than_documented(mode: GenerationMode, tmp_path: Path) -> None:
    story = Publications(tmp_path, SEED)
    story.publish(3)
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    with serve(tmp_path) as url:
        create_subscription(url)
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.definition.raw["operationId"] in BOMBARDED[mode]:
                bombard(operation.as_strategy(generation_mode=mode), url)


def create_subscription(url: str) -> None:
    body = json.dumps({"name": EXISTING, "start": "oldest"}).encode()
    with urlopen(Request(url + "/api/v1/subscriptions", body, method="POST")) as response:
        assert response.status == 201


def aim(case: schemathesis.Case) -> None:
    """At a subscription that exists, most of the time; and nobody waits for events that do not come."""
    if case.path_parameters and len(str(case.path_parameters.get("name", ""))) > 1 and case.method != "DELETE":
        case.path_parameters["name"] = EXISTING
    if case.query and case.query.get("wait"):
        case.query["wait"] = "0"


def bombard(cases: SearchStrategy[schemathesis.Case], url: str) -> None:
    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def check(case: schemathesis.Case) -> None:
        aim(case)
        case.call_and_validate(base_url=url, checks=CHECKS)

    check()


def test_messages_of_stream_and_socket_fit_the_document(tmp_path: Path) -> None:
    document = json.loads(json.dumps(build_asyncapi("1")))

    async def scenario() -> None:
        story = Publications(tmp_path, 1)
        story.publish(2)
        async with open_broker(tmp_path) as url, aiohttp.ClientSession() as session:
            seen = set()
            async with session.get(url + "/api/v1/events/stream?start=oldest") as stream:
                while "apply" not in seen:
                    name, data = await read_frame(stream)
                    validate(data, STREAMED[name], document)
                    seen.add(name)
                await asyncio.to_thread(story.adopt, [story.make_block(START, [story.make_log()])])
                while "undo" not in seen:
                    name, data = await read_frame(stream)
                    validate(data, STREAMED[name], document)
                    seen.add(name)
            await converse(session, url, document)

    asyncio.run(scenario())


async def read_frame(stream: aiohttp.ClientResponse) -> tuple[str, object]:
    fields = {}
    while (line := (await stream.content.readline()).decode().rstrip("\n")) or not fields:
        name, _, fields[name] = line.partition(": ")
    return fields["event"], json.loads(fields["data"])


async def converse(session: aiohttp.ClientSession, url: str, document: dict[str, object]) -> None:
    async with session.ws_connect(url + "/api/v1/ws") as socket:
        start = {"type": "start", "ephemeral": True, "name": "x", "options": {"firstEvent": "oldest", "readAhead": 1}}
        validate(start, SPOKEN["start"], document)
        await socket.send_json(start)
        kinds = set()
        while "protocol_error" not in kinds:
            message = await socket.receive_json()
            validate(message, TOLD[message["type"]], document)
            kinds.add(message["type"])
            if message["type"] == "event_batch":
                await socket.send_json({"type": "ack", "id": "wrong"})
        assert kinds == {"heartbeat", "event_batch", "protocol_error"}


@pytest.mark.parametrize("limit", [1, 2, 5, 6])
def test_topics_come_in_pages(limit: int, tmp_path: Path) -> None:
    async def list_topics(url: str) -> list[str]:
        found, params = list[str](), {"limit": str(limit)}
        while True:
            async with aiohttp.request("GET", f"{url}/api/v1/topics", params=params) as answer:
                page = await answer.json()
            assert len(page["topics"]) <= limit
            found += [topic["name"] for topic in page["topics"]]
            if page["next"] is None:
                return found
            params["after"] = page["next"]

    async def scenario() -> list[str]:
        async with open_broker(tmp_path) as url:
            return await list_topics(url)

    chain = PublishingChain(1, topics=5)
    chain.mine(2)
    with ChainFeed(chain, tmp_path) as feed:
        feed.follow()
        found = asyncio.run(scenario())
    assert len(found) == len(set(found)) == 5

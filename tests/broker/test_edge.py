"""Who is believed to ask, which pages may read, what is logged."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import aiohttp
import pytest

from proofcast.broker.edge import Client, Edge, compute_traceparent, find_client, find_traceparent, parse_origin
from proofcast.broker.io.http import Settings
from proofcast.broker.io.logs import LOG, SERVER, LineFormatter, LogFormat, open_log
from proofcast.errors import InvalidRequest
from proofcast.testing.broker.publications import Publications
from proofcast.testing.broker.serving import open_broker

PAGE = "https://app.example"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize("text", ["app.example", PAGE + "/x", "null", "https://a b", "ftp://app.example"])
def test_wrong_origin_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is no origin"):
        parse_origin(text)


@pytest.mark.parametrize(
    ("peer", "forwarded", "believed"),
    [
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # anybody can write the header
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.1", "198.51.100.1"),  # the client wrote the first one itself
        ("10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1, nonsense", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.2,10.0.0.3", "10.0.0.2"),
        ("::1", "2001:db8::1", "2001:db8::1"),
    ],
)
def test_client_is_the_last_address_that_is_no_proxy(peer: str, forwarded: str, believed: str) -> None:
    edge = Edge(proxies=(ip_network("10.0.0.0/8"), ip_network("::1")))
    assert find_client(edge, peer, {"X-Forwarded-For": forwarded}).address == believed


def test_scheme_and_host_are_believed_of_a_proxy_alone() -> None:
    headers = {"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "events.example"}
    edge = Edge(proxies=(ip_network("127.0.0.1"),))
    assert find_client(edge, "127.0.0.1", headers) == Client("1.2.3.4", "https", "events.example")
    assert find_client(edge, "127.0.0.2", headers) == Client("127.0.0.2")
    assert find_client(edge, "127.0.0.1", headers | {"X-Forwarded-Proto": "javascript"}).scheme == ""


@pytest.mark.parametrize("text", ["", TRACE[:-1], TRACE.upper(), "01" + TRACE[2:], "00-" + "0" * 32 + TRACE[35:]])
def test_malformed_trace_is_not_passed_on(text: str) -> None:
    assert find_traceparent(text) is None


def test_deliveries_of_one_event_are_one_trace() -> None:
    first, again, other = (compute_traceparent(*of) for of in (("a", 1), ("a", 2), ("b", 1)))
    assert all(map(find_traceparent, (first, again, other)))
    assert first[:35] == again[:35] != other[:35]
    assert first[36:52] != again[36:52]


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded"])
def test_what_a_proxy_on_this_machine_carries_is_not_of_this_machine(header: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        async with (
            open_broker(tmp_path) as url,
            aiohttp.request("GET", url + "/api/v1/status", headers={header: "198.51.100.1"}) as response,
        ):
            assert response.status == 401

    asyncio.run(scenario())


def test_page_of_another_origin_may_not_write_or_open_a_socket(tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        async with open_broker(tmp_path) as url, aiohttp.ClientSession(headers={"Origin": PAGE}) as session:
            async with session.post(url + "/api/v1/status") as response:
                assert response.status == 403
                assert PAGE in (await response.json(content_type=None))["title"]
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await session.ws_connect(url + "/api/v1/ws")
            async with session.get(url + "/api/v1/status") as response:
                assert "Access-Control-Allow-Origin" not in response.headers
            async with session.ws_connect(url + "/api/v1/ws", headers={"Origin": url}) as socket:
                assert not socket.closed

    asyncio.run(scenario())


def test_page_of_an_allowed_origin_reads_answers_refusals_and_streams(tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        settings = Settings(edge=Edge(origins=frozenset({parse_origin(PAGE)})))
        async with open_broker(tmp_path, settings) as url, aiohttp.ClientSession(headers={"Origin": PAGE}) as session:
            for path in ("/api/v1/status", "/api/v1/events?finality=soon", "/api/v1/events/stream"):
                async with session.get(url + path) as response:
                    assert response.headers["Access-Control-Allow-Origin"] == PAGE
            wanted = {"Access-Control-Request-Method": "POST"}
            async with session.options(url + "/api/v1/subscriptions", headers=wanted) as response:
                assert response.status == 204
                assert "POST" in response.headers["Access-Control-Allow-Methods"]
            async with session.ws_connect(url + "/api/v1/ws") as socket:
                assert not socket.closed

    asyncio.run(scenario())


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged as JSON during the test."""
    stream, before = io.StringIO(), (LOG.handlers[:], LOG.level, LOG.propagate, SERVER.handlers[:], SERVER.propagate)
    open_log(LogFormat.JSON, logging.INFO, stream)
    yield stream
    LOG.handlers[:], LOG.level, LOG.propagate, SERVER.handlers[:], SERVER.propagate = before


def test_log_has_a_line_per_request_and_nothing_secret(log: io.StringIO, tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        headers = {"Authorization": "Bearer pck_verysecret", "traceparent": TRACE}
        async with open_broker(tmp_path) as url, aiohttp.ClientSession(headers=headers) as session:
            async with session.get(url + "/api/v1/events?topic=verysecret") as response:
                assert response.headers["traceparent"] == TRACE
            await session.get(url + "/api/v1/events/a%0Ab/evidence")

    asyncio.run(scenario())
    text = log.getvalue()
    assert "verysecret" not in text
    first, second = map(json.loads, text.splitlines())
    assert first["message"] == "request"
    assert (first["method"], first["path"], first["status"]) == ("GET", "/api/v1/events", 200)
    assert first["trace"] == TRACE
    assert (second["path"], second["status"]) == ("/api/v1/events/a\nb/evidence", 404)


def test_text_log_keeps_one_line_per_record() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "two\nlines", None, None)
    record.path = "a\nb"
    assert LineFormatter(LogFormat.TEXT).format(record).endswith("warning two\\nlines path=a\\nb")

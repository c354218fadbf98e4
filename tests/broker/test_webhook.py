"""Webhooks over real sockets: signed, in order, tried again, given up, redriven; and where they may not go."""

import asyncio
import ipaddress
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import orjson
import pytest
from aiohttp import web

from proofcast.broker.delivery import LADDER_S, Acknowledge, Bury, Failure, Postpone, Window
from proofcast.broker.io.guard import Guard
from proofcast.broker.io.http import Settings, build_runner
from proofcast.broker.subscription import Pending
from proofcast.cloudevents import parse_binary, parse_structured
from proofcast.errors import InvalidRequest, ProofcastError
from proofcast.event import Step
from proofcast.testing.feed.story import START, LogName, Story
from proofcast.webhook import Signed, verify

SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
ANY = "0x" + bytes(20).hex()
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
API = "/api/v1/subscriptions"

Judge = Callable[[int], int]
"""Status to answer the n-th request with."""


class Receiver:
    """Holds what it was sent; one that is repeated and there already is passed over."""

    def __init__(self, judge: Judge = lambda _: 204) -> None:
        self.judge = judge
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.held: list[LogName] = []
        self.stirred = asyncio.Event()
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests.append((dict(request.headers), body))
        status = self.judge(len(self.requests))
        if status < 300 and b"org.proofcast.ping" not in body:
            self.perform(request, body)
        self.stirred.set()
        return web.Response(status=status, headers={"Location": self.url + "/elsewhere"})

    def perform(self, request: web.Request, body: bytes) -> None:
        signed = Signed(*(request.headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")))
        verify([SECRET], signed, body, int(time.time()))
        is_binary = "ce-id" in request.headers
        delivery = parse_binary(request.headers, body) if is_binary else parse_structured(body)
        at = delivery.event.position
        log = (at.block_hash, at.log_index)
        if delivery.event.step is Step.UNDO:
            assert self.held.pop() == log
        elif not (delivery.is_repeated and log in self.held):
            self.held.append(log)

    async def wait_until(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            self.stirred.clear()
            await self.stirred.wait()


@asynccontextmanager
async def serve(application: web.Application | web.AppRunner) -> AsyncIterator[str]:
    runner = application if isinstance(application, web.AppRunner) else web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def open_receiver(receiver: Receiver) -> AsyncIterator[Receiver]:
    application = web.Application()
    application.router.add_post("/", receiver.take)
    application.router.add_post("/elsewhere", receiver.take)
    async with serve(application) as url:
        receiver.url = url
        yield receiver


@asynccontextmanager
async def open_broker(
    folder: Path, store: str = "", ladder_s: Sequence[float] = (0.0, 0.0)
) -> AsyncIterator[aiohttp.ClientSession]:
    settings = Settings(store=store, allowed_receivers=LOOPBACK, ladder_s=tuple(ladder_s))
    async with (
        serve(build_runner(folder, b"\1" * 20, settings)) as url,
        aiohttp.ClientSession(url) as session,
    ):
        yield session


async def subscribe(session: aiohttp.ClientSession, url: str, **fields: object) -> dict[str, object]:
    body = {
        "name": "flights",
        "start": "oldest",
        "filter": {"contract": ANY},
        "transport": "webhook",
        "options": {"url": url, **fields.pop("options", {})},  # type: ignore[dict-item]
        "secrets": [SECRET],
    }
    async with session.post(API, json=body | fields) as response:
        found: dict[str, object] = await response.json(content_type=None)
        assert response.status == 201, found
        return found


async def get(session: aiohttp.ClientSession, path: str) -> dict[str, object]:
    async with session.get(API + path) as response:
        found: dict[str, object] = await response.json()
        return found


async def wait_for_state(session: aiohttp.ClientSession, name: str, **wanted: object) -> None:
    """Ask until it is so; each question waits for the store, so this does not spin."""
    while not wanted.items() <= (await get(session, "/" + name)).items():
        await asyncio.sleep(0)


# --- where they may not go


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.org/", "https://", "https://user:word@example.org/", "http://example.org/", "https://x:0/"),
        *("https://127.0.0.1/", "https://10.1.2.3/", "https://169.254.169.254/latest", "https://[::1]/"),
        *("https://[::ffff:10.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://0/"),
        *("https://127.1/", "https://2130706433/", "https://0x7f.1/", "https://224.0.0.1/", "https://[fe80::1%25x]/"),
    ],
)
def test_guard_refuses(url: str) -> None:
    with pytest.raises(InvalidRequest):
        Guard().verify_url(url)


@pytest.mark.parametrize("url", ["https://example.org/hook?a=b", "https://8.8.8.8/", "https://[2606:4700::1111]:8443/"])
def test_guard_lets_public_addresses_pass(url: str) -> None:
    Guard().verify_url(url)


def test_name_that_changes_its_address_gains_nothing() -> None:
    """What was looked at is what is connected to: the name is not asked for again."""
    answers = [["93.184.215.14"], ["93.184.215.14", "127.0.0.1"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    async def scenario() -> None:
        assert await Guard(resolve=resolve).find_addresses("rebind.example", 443) == ["93.184.215.14"]
        assert len(answers) == 1
        with pytest.raises(InvalidRequest, match="private"):
            await Guard(resolve=resolve).find_addresses("rebind.example", 443)
        with pytest.raises(InvalidRequest, match="private"):
            await Guard().find_addresses("localhost", 443)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"options": {}}, "no address"),
        ({"options": {"url": "https://10.0.0.1/"}}, "private"),
        ({"options": {"url": "https://example.org/", "mode": "loud"}}, "loud"),
        ({"options": {"url": "https://example.org/"}, "secrets": ["whsec_short"]}, "key"),
        ({"options": {"url": "https://example.org/"}, "secrets": "whsec_x"}, "secrets"),
    ],
)
def test_meaningless_webhook_is_refused(fields: dict[str, object], part: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_broker(tmp_path) as session:
            body = {"name": "x", "transport": "webhook", "secrets": [SECRET]} | fields
            async with session.post(API, json=body) as response:
                found = await response.text()
                assert response.status == 400, found
                assert part in orjson.loads(found)["title"]
                assert "whsec_short" not in found

    asyncio.run(scenario())


# --- the window


def make_pending(ordinal: int, key: str) -> Pending:
    return Pending(ordinal, str(ordinal), key, "", b"{}", (b"", ordinal), Step.APPLY)


def test_failing_delivery_holds_its_key_and_nothing_else() -> None:
    window = Window(ladder_s=(10.0,))
    for ordinal, key in enumerate("aabb"):
        window.offer(make_pending(ordinal, key))
    assert [one.ordinal for one in window.start(0.0)] == [0, 2]
    assert window.settle(0, Failure("500"), 0.0, 0.5) == Postpone(0, 1, 10.0)
    assert window.settle(2, None, 0.0, 0.5) == Acknowledge(2)
    assert [one.ordinal for one in window.start(0.0)] == [3]
    assert (window.deadline(), window.start(9.9)) == (10.0, [])
    (again,) = window.start(10.0)
    assert (again.ordinal, again.attempts, again.is_repeated) == (0, 1, True)
    assert window.settle(0, Failure("500"), 10.0, 0.5) == Bury(0, "500")
    assert [one.ordinal for one in window.start(10.0)] == [1]


def test_what_fails_for_ever_is_given_up_at_once() -> None:
    window = Window()
    window.offer(make_pending(0, "a"))
    window.start(0.0)
    assert window.settle(0, Failure("too large", is_final=True), 0.0, 0.5) == Bury(0, "too large")


def test_pause_is_jittered_and_no_shorter_than_asked_for() -> None:
    for entropy, retry_after_s, due_at in ((0.0, 0.0, 4.0), (1.0, 0.0, 6.0), (0.5, 60.0, 60.0)):
        window = Window()
        window.offer(make_pending(0, "a"))
        window.start(0.0)
        outcome = window.settle(0, Failure("503", retry_after_s=retry_after_s), 0.0, entropy)
        assert isinstance(outcome, Postpone)
        assert outcome.due_at == pytest.approx(due_at)
    assert 86_400 < sum(LADDER_S) < 4 * 86_400


def test_window_is_bounded() -> None:
    window = Window(in_flight_max=2, window_max=5)
    for ordinal in range(5):
        window.offer(make_pending(ordinal, str(ordinal)))
    assert window.room == 0
    assert [one.ordinal for one in window.start(0.0)] == [0, 1]
    window.settle(0, None, 0.0, 0.5)
    assert (window.room, [one.ordinal for one in window.start(0.0)]) == (1, [2])


def test_receiver_that_takes_nothing_for_days_is_left_alone() -> None:
    window = Window(failing_since=0.0)
    assert not window.is_hopeless(86_400.0)
    assert window.is_hopeless(6 * 86_400.0)
    window.offer(make_pending(0, "a"))
    window.start(0.0)
    window.settle(0, None, 0.0, 0.5)
    assert not window.is_hopeless(6 * 86_400.0)


# --- deliveries


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_webhook_follows_the_chain(mode: str, tmp_path: Path, store_address: str) -> None:
    """History, live events and a reorg arrive signed and in order; the receiver ends with the chain's own view."""

    async def scenario() -> None:
        story = Story(tmp_path, 5)
        for _ in range(4):
            story.grow()
        async with open_broker(tmp_path, store_address) as session, open_receiver(Receiver()) as receiver:
            await subscribe(session, receiver.url, options={"mode": mode})
            for _ in range(6):
                await receiver.wait_until(lambda: receiver.held == story.list_logs("latest"))
                await asyncio.to_thread(story.grow)
            await receiver.wait_until(lambda: receiver.held == story.list_logs("latest"))
            await wait_for_state(session, "flights", pending=0)
            page = await get(session, "/flights/deliveries?limit=1000")
            assert {one["outcome"] for one in page["deliveries"]} == {"acknowledge"}  # type: ignore[attr-defined, index]

    asyncio.run(scenario())


def test_failed_delivery_is_tried_again_with_the_same_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log(), story.make_log()])])
        judge = {1: 500, 2: 302}
        receiver = Receiver(lambda number: judge.get(number, 200))
        async with open_broker(tmp_path) as session, open_receiver(receiver):
            await subscribe(session, receiver.url)
            await receiver.wait_until(lambda: len(receiver.held) == 2)
            ids = [headers["webhook-id"] for headers, _ in receiver.requests]
            assert (len(ids), len(set(ids[:3])), len(set(ids))) == (4, 1, 2)
            repeated = [orjson.loads(body).get("repeated") for _, body in receiver.requests]
            assert repeated == [None, "true", "true", None]
            await wait_for_state(session, "flights", pending=0)
            page = await get(session, "/flights/deliveries")
            outcomes = [(one["attempt"], one["outcome"]) for one in page["deliveries"]]  # type: ignore[attr-defined, index]
            assert outcomes == [(1, "acknowledge"), (3, "acknowledge"), (2, "postpone"), (1, "postpone")]

    asyncio.run(scenario())


def test_dead_letter_says_why_and_is_redriven(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log(), story.make_log()])])
        receiver = Receiver(lambda number: 500 if number <= 3 else 200)
        async with open_broker(tmp_path, store_address) as session, open_receiver(receiver):
            await subscribe(session, receiver.url)
            await wait_for_state(session, "flights", pending=0, dead_letters=1)
            (dead,) = (await get(session, "/flights/dead-letters"))["dead_letters"]  # type: ignore[misc, attr-defined]
            assert dead["attempts"] == 3
            assert "500" in dead["reason"]
            async with session.post(API + "/flights/dead-letters/redrive") as response:
                assert await response.json() == {"redriven": 1, "undone": 0}
            await receiver.wait_until(lambda: len(receiver.held) == 2)
            assert [log[1] for log in receiver.held] == [1, 0]
            await wait_for_state(session, "flights", pending=0, dead_letters=0)

    asyncio.run(scenario())


def test_dead_receiver_delays_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log() for _ in range(20)])])
        silent = socket.socket()
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        async with open_broker(tmp_path) as session, open_receiver(Receiver()) as receiver:
            await subscribe(session, f"http://127.0.0.1:{silent.getsockname()[1]}/", name="dead")
            await subscribe(session, receiver.url, name="alive")
            await receiver.wait_until(lambda: len(receiver.held) == 20)
            await wait_for_state(session, "dead", pending=20)
        silent.close()

    asyncio.run(scenario())


def test_receiver_that_is_gone_disables_the_subscription(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log()])])
        async with open_broker(tmp_path) as session, open_receiver(Receiver(lambda _: 410)) as receiver:
            await subscribe(session, receiver.url)
            await wait_for_state(session, "flights", status="disabled")

    asyncio.run(scenario())


def test_paused_webhook_goes_on_where_it_was(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        one = story.make_block(START, [story.make_log()])
        story.adopt([one])
        async with open_broker(tmp_path) as session, open_receiver(Receiver()) as receiver:
            await subscribe(session, receiver.url)
            await wait_for_state(session, "flights", acknowledged=1)
            async with session.post(API + "/flights/pause") as response:
                assert (await response.json())["status"] == "paused"
            two = story.make_block(one.id, [story.make_log()])
            story.adopt([two])
            async with session.post(API + "/flights/resume") as response:
                assert (await response.json())["status"] == "active"
            await receiver.wait_until(lambda: receiver.held == [(one.hash, 0), (two.hash, 0)])

    asyncio.run(scenario())


def test_ping_arrives_and_says_what_came_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_broker(tmp_path) as session, open_receiver(Receiver()) as receiver:
            made = await subscribe(session, receiver.url)
            assert SECRET not in orjson.dumps(made).decode()
            async with session.post(API + "/flights/test") as response:
                assert await response.json() == {"taken": True, "outcome": "taken"}
            receiver.judge = lambda _: 500
            async with session.post(API + "/flights/test") as response:
                assert "500" in (await response.json())["outcome"]
            ((headers, body), _) = receiver.requests
            signed = Signed(*(headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")))
            verify([SECRET], signed, body, int(time.time()))
            with pytest.raises(ProofcastError):
                verify([SECRET], signed, body + b" ", int(time.time()))

    asyncio.run(scenario())


def test_secret_made_by_the_broker_is_shown_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_broker(tmp_path) as session:
            made = await subscribe(session, "https://example.org/", secrets=[])
            assert str(made["secret"]).startswith("whsec_")
            shown = orjson.dumps(await get(session, "/flights")) + orjson.dumps(await get(session, ""))
            assert b"whsec_" not in shown

    asyncio.run(scenario())


# --- receivers that misbehave


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def open_raw(talk: Talk) -> AsyncIterator[str]:
    """A receiver that talks as it likes, and hangs up."""
    talking: list[asyncio.Task[object]] = []

    async def serve_raw(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.append(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await talk(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve_raw, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.gather(*talking)


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (b"", "closed"),
        (b"garbage\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"x" * 100_000, "more than"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, "more than"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nx", "closed"),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", "500"),
        (b"HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n", "redirection"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "taken"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", "taken"),
    ],
)
def test_strange_answer_is_a_failure_and_harms_nobody(answer: bytes, part: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)

        Story(tmp_path, 1)
        async with open_raw(talk) as place, open_broker(tmp_path) as session:
            await subscribe(session, f"http://{place}/")
            async with session.post(API + "/flights/test") as response:
                assert part in (await response.json())["outcome"]

    asyncio.run(scenario())


def test_receiver_that_cannot_show_who_it_is_gets_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_broker(tmp_path) as session, open_receiver(Receiver()) as receiver:
            await subscribe(session, receiver.url.replace("http://", "https://"))
            async with session.post(API + "/flights/test") as response:
                assert (await response.json())["taken"] is False
            assert receiver.requests == []

    asyncio.run(scenario())


def test_kept_connection_that_was_closed_is_replaced(tmp_path: Path) -> None:
    """Between two deliveries the receiver hangs up, as servers do after a while: that is no failure."""

    async def scenario() -> None:
        Story(tmp_path, 1)
        connections = 0

        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await reader.readuntil(b"POST")  # of the next request, which is never answered

        async with open_raw(hang_up) as place, open_broker(tmp_path) as session:
            await subscribe(session, f"http://{place}/")
            for _ in range(3):
                async with session.post(API + "/flights/test") as response:
                    assert (await response.json())["taken"] is True
        assert connections > 1

    asyncio.run(scenario())

"""The stream of server-sent events over a real socket, against a feed that lives through reorgs."""

import asyncio
import gc
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from proofcast.cloudevents import Delivery, parse_structured
from proofcast.event import Finality, Step
from proofcast.testing.broker.serving import open_broker
from proofcast.testing.feed.story import START, LogName, Story

STREAM = "/api/v1/events/stream"
ANY = "0x" + bytes(20).hex()
"""The contract whose raw logs a story has."""


async def read_stream(
    session: aiohttp.ClientSession, url: str, last_id: str = "", **query: str
) -> AsyncIterator[Delivery | tuple[str, str]]:
    """Deliveries, and (name, hash) of notices."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with session.get(url + STREAM, params={"contract": ANY, **query}, headers=headers) as response:
        assert response.status == 200, await response.text()
        fields: dict[str, str] = {}
        async for line in response.content:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif fields["event"] in ("apply", "undo"):
                delivery = parse_structured(fields["data"].encode())
                assert fields["id"] == delivery.cursor
                yield delivery
                fields = {}
            else:
                yield fields["event"], json.loads(fields["data"])["hash"]
                fields = {}


def perform(held: list[LogName], delivery: Delivery) -> None:
    at = delivery.event.position
    if delivery.event.step is Step.UNDO:
        assert held.pop() == (at.block_hash, at.log_index)
    else:
        held.append((at.block_hash, at.log_index))


async def read_until(held: list[LogName], stream: AsyncIterator[object], wanted: list[LogName]) -> str:
    """The cursor at which exactly that is held."""
    cursor = ""
    while held != wanted:
        found = await anext(stream)
        if isinstance(found, Delivery):
            perform(held, found)
            cursor = found.cursor
    return cursor


async def read_deliveries(stream: AsyncIterator[Delivery | tuple[str, str]], count: int) -> list[Delivery]:
    found: list[Delivery] = []
    while len(found) < count:
        one = await anext(stream)
        found += [one] if isinstance(one, Delivery) else []
    return found


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ({"finality": "soon"}, 400, "bad-argument"),
        ({"start": "yesterday"}, 400, "bad-argument"),
        ({"topic": "0x12"}, 400, "bad-argument"),
        ({"contract": ANY, "topic": "x"}, 400, "bad-argument"),
        ({"start": "sequence:3"}, 400, "bad-argument"),
    ],
)
def test_meaningless_request_is_refused(query: dict[str, str], status: int, reason: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1).grow()
        async with open_broker(tmp_path) as url, aiohttp.request("GET", url + STREAM, params=query) as response:
            assert response.status == status
            assert response.content_type == "application/problem+json"
            assert (await response.json(content_type=None))["reason"] == reason

    asyncio.run(scenario())


def test_unknown_path_is_a_problem_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_broker(tmp_path) as url, aiohttp.request("GET", url + "/nowhere") as response:
            assert response.status == 404
            assert response.content_type == "application/problem+json"

    asyncio.run(scenario())


@pytest.mark.parametrize("level", Finality)
def test_history_and_live_meet_without_gap_or_repeat(level: Finality, tmp_path: Path) -> None:
    """Flaw O5: a stream that begins in history and goes on while blocks come and go ends with the chain's own view."""

    async def scenario() -> None:
        story = Story(tmp_path, 7)
        for _ in range(10):
            story.grow()
            story.settle()
        async with open_broker(tmp_path) as url, aiohttp.ClientSession() as session:
            held: list[LogName] = []
            stream = read_stream(session, url, start="oldest", finality=level)
            for _ in range(10):
                await read_until(held, stream, story.list_logs(level))
                await asyncio.to_thread(story.grow)
                await asyncio.to_thread(story.settle)
            await read_until(held, stream, story.list_logs(level))

    asyncio.run(scenario())


def test_reorg_sends_undo_before_new_events(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        old = story.make_block(START, [story.make_log(), story.make_log()])
        story.adopt([old])
        async with open_broker(tmp_path) as url, aiohttp.ClientSession() as session:
            stream = read_stream(session, url, start="oldest")
            await read_until([], stream, [(old.hash, 0), (old.hash, 1)])
            new = story.make_block(START, [story.make_log()])
            await asyncio.to_thread(story.adopt, [new])
            found = await read_deliveries(stream, 3)
            assert [(one.event.step, one.event.position.block_hash, one.event.position.log_index) for one in found] == [
                (Step.UNDO, old.hash, 1),
                (Step.UNDO, old.hash, 0),
                (Step.APPLY, new.hash, 0),
            ]

    asyncio.run(scenario())


def test_reconnecting_with_a_cursor_of_an_orphaned_block(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        old = story.make_block(START, [story.make_log()])
        story.adopt([old])
        async with open_broker(tmp_path) as url, aiohttp.ClientSession() as session:
            held: list[LogName] = []
            cursor = await read_until(held, read_stream(session, url, start="oldest"), [(old.hash, 0)])
            story.adopt([story.make_block(START, [story.make_log()])])
            await read_until(held, read_stream(session, url, last_id=cursor), story.list_logs(Finality.LATEST))

    asyncio.run(scenario())


def test_another_broker_takes_the_cursor(tmp_path: Path) -> None:
    """Two brokers that share nothing: the second never saw the block, and says from where everything comes again."""

    async def scenario() -> None:
        one, two = Story(tmp_path / "one", 1), Story(tmp_path / "two", 2)
        common = one.make_block(START, [one.make_log()])
        two.logs[common.hash] = one.logs[common.hash]
        for story in (one, two):
            story.adopt([common])
        orphan = one.make_block(common.id, [one.make_log()])
        one.adopt([orphan])
        two.adopt([two.make_block(common.id, [two.make_log(), two.make_log()])])
        held: list[LogName] = []
        async with open_broker(tmp_path / "one") as url, aiohttp.ClientSession() as session:
            cursor = await read_until(
                held, read_stream(session, url, start="oldest"), [(common.hash, 0), (orphan.hash, 0)]
            )
        async with open_broker(tmp_path / "two") as url, aiohttp.ClientSession() as session:
            stream = read_stream(session, url, last_id=cursor)
            assert await anext(stream) == ("rewind", "0x" + START.hash.hex())
            await read_until([], stream, two.list_logs(Finality.LATEST))

    asyncio.run(scenario())


def test_page_after_page_is_the_whole_history(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 3)
        for _ in range(12):
            story.grow()
        async with open_broker(tmp_path) as url, aiohttp.ClientSession() as session:
            held: list[LogName] = []
            query = {"contract": ANY, "start": "oldest", "limit": "5"}
            complete = False
            while not complete:
                async with session.get(url + "/api/v1/events", params=query) as response:
                    page = await response.json()
                for event in page["events"]:
                    perform(held, parse_structured(json.dumps(event).encode()))
                query["start"], complete = page["cursor"], page["complete"]
            assert held == story.list_logs(Finality.LATEST)

    asyncio.run(scenario())


def test_status_names_the_newest_block_of_each_finality(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 3)
        story.adopt([story.make_block(START, [])])
        async with open_broker(tmp_path) as url, aiohttp.request("GET", url + "/api/v1/status") as response:
            blocks = (await response.json())["blocks"]
            assert {level: found["number"] for level, found in blocks.items()} == {
                "latest": START.number + 1,
                "safe": START.number,
                "finalized": START.number,
            }

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists a process's open files: use Linux")
def test_stopped_broker_leaves_no_file_open(tmp_path: Path) -> None:
    def count_open() -> int:
        gc.collect()
        return sum(
            os.path.realpath(f"/proc/self/fd/{one}").startswith(str(tmp_path)) for one in os.listdir("/proc/self/fd")
        )

    async def scenario() -> None:
        async with open_broker(tmp_path) as url, aiohttp.ClientSession() as session:
            for path in ("/metrics", "/api/v1/exchanges", "/api/v1/topics"):
                async with session.get(url + path) as answer:
                    assert answer.status == 200
            assert count_open() > 0

    story = Story(tmp_path, 1)
    story.grow()
    del story
    asyncio.run(scenario())
    assert count_open() == 0

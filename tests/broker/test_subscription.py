"""Durable subscriptions over HTTP: made, fetched, acknowledged, streamed, changed; through random histories."""

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from proofcast.broker.io.http import Settings
from proofcast.cloudevents import parse_structured
from proofcast.event import Finality, Step
from proofcast.testing.broker.serving import open_broker
from proofcast.testing.feed.story import START, LogName, Story

API = "/api/v1/subscriptions"
ANY = "0x" + bytes(20).hex()
PULL = {"name": "flights", "start": "oldest", "filter": {"contract": ANY}}
NOTHING = {"contract": "0x" + (b"\7" * 20).hex()}

Json = dict[str, object]


class Api:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def ask(self, method: str, path: str, body: object = None, status: int = 200, **headers: str) -> Json:
        async with self.session.request(method, API + path, json=body, headers=headers) as response:
            text = await response.text()
            assert response.status == status, text
            found: Json = json.loads(text) if text else {}
            return found

    async def fetch(self, **query: str) -> list[Json]:
        words = "&".join(f"{name}={value}" for name, value in query.items())
        found = (await self.ask("GET", f"/flights/events?{words}"))["events"]
        assert isinstance(found, list)
        return found

    async def acknowledge(self, event: Json, status: int = 200) -> Json:
        return await self.ask("POST", "/flights/ack", {"cursor": event["cursor"]}, status)


@asynccontextmanager
async def open_api(folder: Path, store: str = "") -> AsyncIterator[Api]:
    async with open_broker(folder, Settings(store=store)) as url, aiohttp.ClientSession(url) as session:
        yield Api(session)


def perform(held: list[LogName], event: Json) -> None:
    """A subscriber that knows what it has: a repeated step it has done already is passed over."""
    delivery = parse_structured(json.dumps(event).encode())
    log = (delivery.event.position.block_hash, delivery.event.position.log_index)
    if delivery.event.step is Step.APPLY:
        if not (delivery.is_repeated and log in held):
            held.append(log)
    elif held and held[-1] == log:
        held.pop()
    else:
        assert delivery.is_repeated, f"{log} is undone, {held[-1:]} is the newest"


# --- refusals


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"name": "Flights!"}, "Flights!"),
        ({"name": ""}, "name"),
        ({"filter": {"colour": "red"}}, "colour"),
        ({"filter": []}, "filter"),
        ({"finality": "soon"}, "soon"),
        ({"transport": "pigeon"}, "pigeon"),
        ({"ordering": "none"}, "none"),
        ({"batch_size": 0}, "0"),
        ({"batch_size": True}, "True"),
        ({"options": {"url": 7}}, "options"),
        ({"options": {"url": "https://example.org/"}}, "options"),
        ({"start": "yesterday"}, "yesterday"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_meaningless_subscription_is_refused(fields: Json, part: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_api(tmp_path) as api:
            found = await api.ask("POST", "", PULL | fields, 400)
            assert found["reason"] == "bad-argument"
            assert part in str(found["title"])
            assert (await api.ask("GET", ""))["subscriptions"] == []

    asyncio.run(scenario())


def test_taken_name_and_unknown_name(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_api(tmp_path, store_address) as api:
            await api.ask("POST", "", PULL, 201)
            assert (await api.ask("POST", "", PULL, 409))["reason"] == "already-exists"
            for method, path in (("GET", ""), ("DELETE", ""), ("PATCH", ""), ("POST", "/pause"), ("GET", "/events")):
                found = await api.ask(method, "/nobody" + path, {} if method == "PATCH" else None, 404)
                assert found["reason"] == "unknown-subscription"

    asyncio.run(scenario())


def test_same_idempotency_key_creates_once(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_api(tmp_path, store_address) as api:
            key = {"Idempotency-Key": "one"}
            made = await api.ask("POST", "", PULL, 201, **key)
            assert await api.ask("POST", "", PULL, 200, **key) == made
            await api.ask("POST", "", PULL | {"finality": "safe"}, 409, **key)
            await api.ask("POST", "", PULL | {"name": "b"}, 400, **{"Idempotency-Key": "x" * 129})

    asyncio.run(scenario())


# --- fetching


def test_fetched_events_come_again_until_they_are_acknowledged(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log() for _ in range(5)])])
        async with open_api(tmp_path, store_address) as api:
            await api.ask("POST", "", PULL, 201)
            first = await api.fetch(limit="3")
            assert [one.get("repeated") for one in first] == [None] * 3
            again = await api.fetch(limit="3")
            assert [(one["id"], one["repeated"]) for one in again] == [(one["id"], "true") for one in first]
            assert await api.acknowledge(first[1]) == {"acknowledged": 2}
            assert await api.acknowledge(first[1]) == {"acknowledged": 0}
            await api.acknowledge(first[0], 409)
            assert [one["logindex"] for one in await api.fetch()] == [2]
            await api.acknowledge(first[2])
            assert [one["logindex"] for one in await api.fetch()] == [3, 4]
            shown = await api.ask("GET", "/flights")
            assert (shown["acknowledged"], shown["pending"], shown["lag_blocks"]) == (3, 2, 0)

    asyncio.run(scenario())


def test_long_poll_ends_with_the_first_event(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        async with open_api(tmp_path) as api:
            await api.ask("POST", "", PULL, 201)
            assert await api.fetch() == []
            waiting = asyncio.create_task(api.fetch(wait="30"))
            await asyncio.to_thread(story.adopt, [story.make_block(START, [story.make_log()])])
            (found,) = await waiting
            await api.acknowledge(found)

    asyncio.run(scenario())


def test_paused_subscription_is_empty_and_rewound_one_repeats(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log()])])
        async with open_api(tmp_path, store_address) as api:
            await api.ask("POST", "", PULL, 201)
            (found,) = await api.fetch()
            await api.acknowledge(found)
            await api.ask("POST", "/flights/rewind", {"start": "never"}, 400)
            await api.ask("POST", "/flights/rewind", {"start": "oldest"})
            assert (await api.ask("POST", "/flights/pause"))["status"] == "paused"
            assert await api.fetch() == []
            assert (await api.ask("POST", "/flights/resume"))["status"] == "active"
            (again,) = await api.fetch()
            assert (again["id"], again["repeated"]) == (found["id"], "true")
            await api.ask("DELETE", "/flights", status=204)
            await api.ask("GET", "/flights", status=404)

    asyncio.run(scenario())


def test_changed_subscription_keeps_its_cursor(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        old = story.make_block(START, [story.make_log()])
        story.adopt([old])
        async with open_api(tmp_path) as api:
            await api.ask("POST", "", PULL, 201)
            (found,) = await api.fetch()
            await api.acknowledge(found)
            before = await api.ask("GET", "/flights")
            changed = await api.ask("PATCH", "/flights", {"filter": NOTHING, "batch_size": 7})
            assert (changed["cursor"], changed["filter"], changed["batch_size"]) == (before["cursor"], NOTHING, 7)
            await api.ask("PATCH", "/flights", {"batch_size": "7"}, 400)
            story.adopt([story.make_block(START, [story.make_log()])])
            (undone,) = await api.fetch(wait="30")
            assert (undone["type"], undone["blockhash"]) == ("org.proofcast.event.undo", "0x" + old.hash.hex())

    asyncio.run(scenario())


def test_list_is_paged_and_filtered(tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_api(tmp_path) as api:
            for name in ("a", "b", "c"):
                await api.ask("POST", "", PULL | {"name": name}, 201)
            await api.ask("POST", "/b/pause")
            page = await api.ask("GET", "?limit=2")
            assert ([one["name"] for one in page["subscriptions"]], page["next"]) == (["a", "b"], "b")  # type: ignore[attr-defined]
            page = await api.ask("GET", "?limit=2&after=b")
            assert ([one["name"] for one in page["subscriptions"]], page["next"]) == (["c"], None)  # type: ignore[attr-defined]
            page = await api.ask("GET", "?status=paused")
            assert [one["name"] for one in page["subscriptions"]] == ["b"]  # type: ignore[attr-defined]
            await api.ask("GET", "?status=tired", status=400)

    asyncio.run(scenario())


async def read_stream(api: Api, last_id: str = "") -> AsyncIterator[Json]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with api.session.get(API + "/flights/stream", headers=headers) as response:
        assert response.status == 200, await response.text()
        name = ""
        async for line in response.content:
            word, _, value = line.decode().rstrip("\n").partition(": ")
            name = value if word == "event" else name
            if word == "data" and name in ("apply", "undo"):
                yield json.loads(value)


@pytest.mark.slow
def test_stream_is_acknowledged_by_the_last_id_it_names(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log() for _ in range(3)])])
        async with open_api(tmp_path, store_address) as api:
            await api.ask("POST", "", PULL, 201)
            stream = read_stream(api)
            seen = [await anext(stream) for _ in range(3)]
            assert [one.get("repeated") for one in seen] == [None] * 3
            newer = read_stream(api, str(seen[1]["cursor"]))  # the older one is ended by it
            again = await anext(newer)
            assert (again["id"], again["repeated"]) == (seen[2]["id"], "true")
            await api.acknowledge(again)
            assert [one async for one in stream] == []
            shown = await api.ask("GET", "/flights")
            assert (shown["pending"], shown["acknowledged"]) == (0, 3)

    asyncio.run(scenario())


# --- crashes, reorgs and changes


@pytest.mark.slow
def test_every_history_ends_with_the_chain_s_own_view(tmp_path: Path, store_address: str) -> None:
    """Reorgs while a subscriber fetches, forgets to acknowledge, rewinds itself to an older state and comes back."""

    async def scenario(seed: int) -> None:
        chance = random.Random(seed)
        story = Story(tmp_path / str(seed), seed)
        async with open_api(tmp_path / str(seed), store_address) as api:
            await api.ask("POST", "", PULL | {"name": "flights"}, 201)
            held: list[LogName] = []
            for _ in range(30):
                await asyncio.to_thread(chance.choice((story.grow, story.settle)))
                events = await api.fetch(limit=str(chance.randint(1, 5)))
                done = events[: chance.randint(0, len(events))]
                for event in done:
                    perform(held, event)
                acknowledged = done[: chance.randint(0, len(done))]
                if acknowledged:
                    await api.acknowledge(acknowledged[-1])
            while events := await api.fetch():
                for event in events:
                    perform(held, event)
                await api.acknowledge(events[-1])
            assert held == story.list_logs(Finality.LATEST), f"seed {seed}"
            await api.ask("DELETE", "/flights", status=204)

    for seed in itertools.islice(itertools.count(1), 5):
        asyncio.run(scenario(seed))

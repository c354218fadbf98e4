"""Conversations over a WebSocket: first what is refused, then batches and their acknowledgement."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.broker.conversation import MESSAGE_BYTES_MAX, Conversation
from proofcast.broker.io.http import Settings
from proofcast.broker.messages import parse_object
from proofcast.cloudevents import Delivery, parse_structured
from proofcast.errors import InvalidRequest
from proofcast.event import Finality, Step
from proofcast.testing.broker.publications import Publications
from proofcast.testing.broker.serving import open_broker
from proofcast.testing.feed.story import START, LogName, Story

PATH = "/api/v1/ws"
ANY = "0x" + bytes(20).hex()
"""The contract whose raw logs a story has."""
Socket = aiohttp.ClientWebSocketResponse


@asynccontextmanager
async def connect(url: str, query: str = "") -> AsyncIterator[Socket]:
    async with aiohttp.ClientSession() as session, session.ws_connect(url + PATH + query) as socket:
        yield socket


def start(name: str = "mine", **options: object) -> dict[str, object]:
    return {"type": "start", "name": name, "ephemeral": True, "options": {"firstEvent": "oldest", **options}}


async def read_batch(socket: Socket) -> dict[str, object]:
    """The next batch; heartbeats are passed over."""
    while True:
        message = await socket.receive_json()
        if message["type"] != "heartbeat":
            return message


def parse_events(batch: dict[str, object]) -> list[Delivery]:
    assert batch["type"] == "event_batch", batch
    return [parse_structured(json.dumps(event).encode()) for event in batch["events"]]


def list_marks(batch: dict[str, object]) -> list[tuple[int, bool]]:
    """Sequence of each event, and whether it is marked as repeated."""
    return [(one.event.sequence, one.is_repeated) for one in parse_events(batch)]


REFUSED = [
    ("", "is no JSON"),
    ("[]", "is no JSON object"),
    ("{}", "`None` is no type of message"),
    ('{"type": "stop"}', "`stop` is no type of message"),
    ('{"type": "start"}', "neither `name` nor `ephemeral`"),
    ('{"type": "start", "nam": "x"}', "`nam` means nothing"),
    ('{"type": "start", "name": 7}', "`name` is `7`"),
    ('{"type": "start", "name": "x", "namespace": "other"}', "no namespace `other`"),
    ('{"type": "start", "name": "x", "filter": {"topic": "y"}}', "is stored"),
    ('{"type": "start", "ephemeral": "yes"}', "`ephemeral` is `yes`"),
    ('{"type": "start", "ephemeral": true, "filter": {"events": "x"}}', "`events` is nothing to select by"),
    ('{"type": "start", "ephemeral": true, "options": {"readAhead": 0}}', "`0` is no number"),
    ('{"type": "start", "ephemeral": true, "options": {"firstEvent": "17"}}', "`17` is no cursor"),
    ('{"type": "start", "ephemeral": true, "options": {"finality": "soon"}}', "`soon` is no finality"),
    ('{"type": "ack", "id": "x"}', "was not started here"),
]


@pytest.mark.parametrize(("data", "fault"), REFUSED)
def test_wrong_message_is_refused(data: str, fault: str) -> None:
    with pytest.raises(InvalidRequest, match=fault):
        Conversation().receive(parse_object(data))


def test_acknowledging_what_is_not_under_way_is_refused() -> None:
    conversation = Conversation()
    conversation.receive(start())
    with pytest.raises(InvalidRequest, match="the batch under way is `none`, not `1`"):
        conversation.receive({"type": "ack", "id": "1"})
    conversation.offer("mine", "1")
    with pytest.raises(InvalidRequest, match="the batch under way is `1`, not `2`"):
        conversation.receive({"type": "ack", "id": "2"})
    conversation.receive({"type": "ack", "id": "1"})
    with pytest.raises(InvalidRequest, match="the batch under way is `none`, not `1`"):
        conversation.receive({"type": "ack", "id": "1"})


def test_name_is_started_once_and_named_where_there_are_two() -> None:
    conversation = Conversation()
    conversation.receive(start("one"))
    with pytest.raises(InvalidRequest, match="`one` was started before"):
        conversation.receive(start("one"))
    conversation.receive(start("two"))
    with pytest.raises(InvalidRequest, match="was not started here"):
        conversation.receive({"type": "ack", "id": "1"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    (
        "type",
        "name",
        "namespace",
        "ephemeral",
        "autoack",
        "filter",
        "options",
        "id",
        "subscription",
        "start",
        "ack",
        "nack",
    )
)


@given(st.lists(st.dictionaries(WORDS, JSON | WORDS | st.just({"topic": "x"}), max_size=6), max_size=6))
@pytest.mark.slow
def test_anything_is_understood_or_refused(messages: list[dict[str, object]]) -> None:
    conversation = Conversation()
    for message in messages:
        with suppress(InvalidRequest):
            conversation.receive(message)


@pytest.mark.parametrize("message", ["{", '{"type": "start", "name": "unknown"}', '{"type": "ack", "id": ""}', b"{}"])
def test_protocol_error_ends_the_connection_with_a_reason(message: str | bytes, tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_broker(tmp_path) as url, connect(url) as socket:
            await (socket.send_str(message) if isinstance(message, str) else socket.send_bytes(message))
            answer = await socket.receive_json()
            assert answer["type"] == "protocol_error"
            assert answer["error"]
            assert answer["hint"]
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE

    asyncio.run(scenario())


def test_giant_message_closes_only_its_own_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        async with open_broker(tmp_path) as url, connect(url) as other, connect(url) as socket:
            await socket.send_str('"' + "x" * MESSAGE_BYTES_MAX + '"')
            closed = await socket.receive()
            assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)
            await other.send_json(start())
            assert len(parse_events(await read_batch(other))) == 1

    asyncio.run(scenario())


def test_ordinary_request_is_told_what_the_address_is_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_broker(tmp_path) as url, aiohttp.request("GET", url + PATH) as response:
            assert response.status == 400
            assert "ws://" in (await response.json(content_type=None))["hint"]

    asyncio.run(scenario())


def test_next_batch_comes_after_the_acknowledgement(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Publications(tmp_path, 1)
        story.publish(5)
        async with open_broker(tmp_path) as url, connect(url) as socket:
            await socket.send_json(start(readAhead=2))
            sequences = []
            for count in (2, 2, 1):
                batch = await read_batch(socket)
                events = parse_events(batch)
                assert (len(events), batch["id"]) == (count, events[-1].cursor)
                assert batch["subscription"] == {"namespace": "default", "name": "mine"}
                sequences += [one.event.sequence for one in events]
                await socket.send_json({"type": "nack", "id": batch["id"]})
                again = await read_batch(socket)
                assert all(one.is_repeated for one in parse_events(again))
                await socket.send_json({"type": "ack", "id": batch["id"]})
            assert sequences == [1, 2, 3, 4, 5]

    asyncio.run(scenario())


def test_several_subscriptions_on_one_connection_wait_for_their_own_acknowledgement(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Publications(tmp_path, 1)
        story.publish(2)
        async with open_broker(tmp_path) as url, connect(url) as socket:
            await socket.send_json(start("slow", readAhead=1))
            await read_batch(socket)
            await socket.send_json(start("fast", readAhead=1))
            for sequence in (1, 2):
                batch = await read_batch(socket)
                assert batch["subscription"]["name"] == "fast"
                assert parse_events(batch)[0].event.sequence == sequence
                await socket.send_json({"type": "ack", "id": batch["id"], "subscription": {"name": "fast"}})

    asyncio.run(scenario())


def test_address_may_hold_the_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Publications(tmp_path, 1)
        story.publish(3)
        query = "?ephemeral&autoack=true&firstEvent=oldest&readAhead=1&filter.publisher=0x" + "03" * 20
        async with open_broker(tmp_path) as url, connect(url, query) as socket:
            found = [parse_events(await read_batch(socket))[0].event.sequence for _ in range(3)]
            assert found == [1, 2, 3]

    asyncio.run(scenario())


def test_reorg_is_undone_and_the_last_cursor_goes_on(tmp_path: Path) -> None:
    """What a subscriber holds ends as what the chain holds, over two connections."""

    async def scenario() -> None:
        story, held = Story(tmp_path, 5), []
        story.adopt([story.make_block(START, [story.make_log(), story.make_log()])])
        async with open_broker(tmp_path) as url:
            async with connect(url) as socket:
                await socket.send_json(start() | {"filter": {"contract": ANY}})
                cursor = await read_until(socket, held, story.list_logs(Finality.LATEST))
            story.adopt([story.make_block(START, [story.make_log()])])
            async with connect(url) as socket:
                await socket.send_json(start(firstEvent=cursor) | {"filter": {"contract": ANY}})
                await read_until(socket, held, story.list_logs(Finality.LATEST))

    asyncio.run(scenario())


def test_broker_that_never_saw_the_block_of_the_cursor_rewinds(tmp_path: Path) -> None:
    async def scenario() -> None:
        one, two = Story(tmp_path / "one", 1), Story(tmp_path / "two", 2)
        one.adopt([one.make_block(START, [one.make_log()])])
        two.adopt([two.make_block(START, [two.make_log(), two.make_log()])])
        wanted = {"filter": {"contract": ANY}}
        async with open_broker(tmp_path / "one") as url, connect(url) as socket:
            await socket.send_json(start() | wanted)
            cursor = await read_until(socket, [], one.list_logs(Finality.LATEST))
        async with open_broker(tmp_path / "two") as url, connect(url) as socket:
            await socket.send_json(start(firstEvent=cursor) | wanted)
            rewound = await read_batch(socket)
            assert (rewound["type"], rewound["block"]["number"]) == ("rewind", START.number)
            await read_until(socket, [], two.list_logs(Finality.LATEST))

    asyncio.run(scenario())


async def read_until(socket: Socket, held: list[LogName], wanted: list[LogName]) -> str:
    cursor = ""
    while held != wanted:
        batch = await read_batch(socket)
        for one in parse_events(batch):
            at = one.event.position
            if one.event.step is Step.UNDO:
                assert held.pop() == (at.block_hash, at.log_index)
            else:
                held.append((at.block_hash, at.log_index))
        cursor = str(batch["id"])
        await socket.send_json({"type": "ack", "id": cursor})
    return cursor


# --- stored subscriptions


async def create(url: str, **terms: object) -> None:
    body = {"name": "stored", "transport": "websocket", "start": "oldest", **terms}
    async with aiohttp.ClientSession() as session, session.post(url + "/api/v1/subscriptions", json=body) as response:
        assert response.status == 201, await response.text()


async def post(url: str, path: str) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{url}/api/v1/subscriptions/stored{path}") as response:
        assert response.status == 200, await response.text()


STORED = {"type": "start", "name": "stored", "options": {"readAhead": 2}}


def test_subscription_that_is_paused_or_of_another_transport_is_not_started(tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        async with open_broker(tmp_path) as url:
            await create(url)
            await create(url, name="pulled", transport="pull")
            await post(url, "/pause")
            for name, fault in (("stored", "`paused`"), ("pulled", "`pull`"), ("none", "`none`")):
                async with connect(url) as socket:
                    await socket.send_json(STORED | {"name": name})
                    answer = await read_batch(socket)
                    assert answer["type"] == "protocol_error"
                    assert fault in answer["error"]

    asyncio.run(scenario())


def test_stored_subscription_goes_on_behind_what_was_acknowledged(tmp_path: Path) -> None:
    """Two connections and two lives of the broker: nothing is left out, what was not acknowledged comes marked."""

    async def scenario() -> None:
        story = Publications(tmp_path, 1)
        story.publish(5)
        async with open_broker(tmp_path) as url:
            await create(url)
            async with connect(url) as socket:
                await socket.send_json(STORED)
                first = await read_batch(socket)
                assert [(one.event.sequence, one.is_repeated) for one in parse_events(first)] == [
                    (1, False),
                    (2, False),
                ]
                await socket.send_json({"type": "ack", "id": first["id"]})
                await read_batch(socket)
        async with open_broker(tmp_path) as url, connect(url) as socket:
            await socket.send_json(STORED)
            second = await read_batch(socket)
            assert list_marks(second) == [(3, True), (4, True)]
            await socket.send_json({"type": "ack", "id": second["id"]})
            assert [one.event.sequence for one in parse_events(await read_batch(socket))] == [5]

    asyncio.run(scenario())


def test_subscription_that_is_paused_ends_its_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        async with open_broker(tmp_path, Settings(lease_s=0.3)) as url, connect(url) as socket:
            await create(url)
            await socket.send_json(STORED)
            await read_batch(socket)
            await post(url, "/pause")
            answer = await read_batch(socket)
            assert (answer["type"], "was changed" in answer["error"]) == ("protocol_error", True)

    asyncio.run(scenario())


def test_newer_connection_takes_a_stored_subscription_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        async with open_broker(tmp_path) as url, connect(url) as old, connect(url) as new:
            await create(url)
            await old.send_json(STORED)
            batch = await read_batch(old)
            await new.send_json(STORED)
            again = await read_batch(new)
            assert parse_events(again)[0].is_repeated
            await old.send_json({"type": "ack", "id": batch["id"]})
            assert (await read_batch(old))["reason"] == "fenced"

    asyncio.run(scenario())

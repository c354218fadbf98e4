"""A subscription that ends in a topic of Kafka: a real broker, started once for all tests here."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from confluent_kafka import Consumer, Message
from confluent_kafka.admin import AdminClient, NewTopic

from proofcast.broker.edge import find_traceparent
from proofcast.broker.io.http import Settings
from proofcast.broker.kafka import parse_target
from proofcast.broker.subscription import Terms, Transport
from proofcast.cli.broker_serving import read_properties
from proofcast.cloudevents import CONTENT_TYPE, Delivery, parse_binary, parse_structured
from proofcast.errors import InvalidRequest
from proofcast.event import Step
from proofcast.onchain.events import Published
from proofcast.testing.broker.kafka import run_kafka
from proofcast.testing.broker.publications import PUBLISHER, TOPIC, Publications, encode_published
from proofcast.testing.broker.serving import open_broker
from proofcast.testing.feed.story import START

SUBSCRIPTIONS = "/api/v1/subscriptions"
READ_S_MAX = 30.0


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({}, "`` is no topic of Kafka"),
        ({"topic": "a b"}, "`a b` is no topic of Kafka"),
        ({"topic": ".."}, "no topic of Kafka"),
        ({"topic": "x" * 250}, "no topic of Kafka"),
        ({"topic": "x", "mode": "text"}, "`text` is no mode"),
        ({"topic": "x", "servers": "elsewhere:9092"}, "`servers` is nothing a Kafka sink knows"),
    ],
)
def test_wrong_option_is_refused(options: dict[str, str], fault: str) -> None:
    with pytest.raises(InvalidRequest, match=fault):
        parse_target(Terms(transport=Transport.KAFKA, options=options))


def test_properties_are_read_and_a_wrong_line_is_named_without_its_value(tmp_path: Path) -> None:
    path = tmp_path / "kafka.properties"
    path.write_text("# ours\n\nsasl.password = very=secret\n")
    assert read_properties(path) == {"sasl.password": "very=secret"}
    path.write_text("security.protocol=SSL\nverysecret\n")
    with pytest.raises(InvalidRequest, match="line `2`") as refused:
        read_properties(path)
    assert "verysecret" not in str(refused.value)


def test_broker_without_kafka_refuses_the_transport(tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1)
        async with open_broker(tmp_path) as url, aiohttp.ClientSession() as session:
            assert "no Kafka" in (await create(session, url, 400, topic="flights"))["title"]

    asyncio.run(scenario())


async def create(session: aiohttp.ClientSession, url: str, status: int = 201, **options: str) -> dict[str, str]:
    body = {"name": "sink", "transport": "kafka", "start": "oldest", "options": options}
    async with session.post(url + SUBSCRIPTIONS, json=body) as response:
        assert response.status == status, await response.text()
        return await response.json(content_type=None)


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    with run_kafka() as address:
        yield address


def make_topic(kafka: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})  # kept until it is done: without it nothing is
    admin.create_topics([NewTopic(name, 3)])[name].result()


def read_records(kafka: str, topic: str, count: int) -> list[Message]:
    """The first so many, of all partitions, as they were written."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[Message] = []
    try:
        while len(found) < count:
            records = consumer.consume(count - len(found), READ_S_MAX)
            assert records, f"{len(found)} of {count} records"
            assert not any(record.error() for record in records)
            found += records
    finally:
        consumer.close()
    return found


def parse_record(record: Message) -> Delivery:
    headers = {name: value.decode() for name, value in record.headers() or ()}
    assert find_traceparent(headers["traceparent"])
    if headers["content-type"] == CONTENT_TYPE:
        return parse_structured(record.value() or b"")
    attributes = {name.replace("ce_", "ce-", 1): value for name, value in headers.items()}
    return parse_binary(attributes, record.value() or b"")


@pytest.mark.slow
@pytest.mark.needs("kafka")
@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_events_and_undos_arrive_once_in_order_with_their_topic_as_key(kafka: str, mode: str, tmp_path: Path) -> None:
    make_topic(kafka, mode)

    async def scenario() -> None:
        story = Publications(tmp_path, 1)
        story.publish(1_500)
        settings = Settings(kafka={"bootstrap.servers": kafka})
        async with open_broker(tmp_path, settings) as url, aiohttp.ClientSession() as session:
            await create(session, url, topic=mode, mode=mode)
            before = await asyncio.to_thread(read_records, kafka, mode, 1_500)
            story.adopt([story.make_block(START, [story.make_log()])])
            records = before + await asyncio.to_thread(read_records, kafka, mode, 1_501)
            async with session.get(f"{url}{SUBSCRIPTIONS}/sink") as response:
                state = await response.json()
        found = [parse_record(record) for record in records]
        assert {record.key() for record in records} == {TOPIC.hex().encode()}
        assert [one.event.sequence for one in found] == [*range(1, 1_501), *range(1_500, 0, -1), 1_501]
        assert [one.event.step for one in found] == [Step.APPLY] * 1_500 + [Step.UNDO] * 1_500 + [Step.APPLY]
        assert not any(one.is_repeated for one in found)
        assert state["pending"] == 0

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.needs("kafka")
def test_nothing_is_lost_while_the_topic_is_missing_and_too_large_a_record_is_buried(
    kafka: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        story = Publications(tmp_path, 1)
        story.publish(1)
        giant = Published(TOPIC, 2, bytes(32), PUBLISHER, bytes(2**21))
        story.adopt([story.make_block(story.path[-1], [encode_published(giant)])])
        story.published += 1
        story.publish(1)
        settings = Settings(kafka={"bootstrap.servers": kafka})
        async with open_broker(tmp_path, settings) as url, aiohttp.ClientSession() as session:
            await create(session, url, topic="later")
            assert (await read_until(session, url + "/deliveries", "deliveries"))[0]["outcome"] == "failed"
            assert "UNKNOWN_TOPIC" in await ping(session, url)
            make_topic(kafka, "later")
            records = await asyncio.to_thread(read_records, kafka, "later", 2)
            assert [parse_record(record).event.sequence for record in records] == [1, 3]
            (dead,) = await read_until(session, url + "/dead-letters", "dead_letters")
            assert "SIZE_TOO_LARGE" in dead["reason"]
            assert await ping(session, url) == "taken"

    asyncio.run(scenario())


async def ping(session: aiohttp.ClientSession, url: str) -> str:
    async with session.post(f"{url}{SUBSCRIPTIONS}/sink/test") as response:
        return (await response.json())["outcome"]


async def read_until(session: aiohttp.ClientSession, path: str, name: str) -> list[dict[str, str]]:
    """A list of the subscription, once there is something in it."""
    url, _, last = path.rpartition("/")
    async with asyncio.timeout(READ_S_MAX):
        while True:
            async with session.get(f"{url}{SUBSCRIPTIONS}/sink/{last}") as response:
                if found := (await response.json())[name]:
                    return found

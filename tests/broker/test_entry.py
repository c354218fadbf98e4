"""Bytes made of a stored log are those of the event; and a topic's events can be begun with any of them."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.broker.entry import Entry
from proofcast.broker.frames import is_published
from proofcast.broker.io.hub import Hub
from proofcast.chain.segment import BlockId
from proofcast.cloudevents import encode_structured, parse_structured
from proofcast.ethereum.receipt import Log
from proofcast.event import Finality, Step
from proofcast.feed.outbox import Row
from proofcast.feed.view import Move, View
from proofcast.onchain.events import HASH_BY_NAME, Published, find_event
from proofcast.onchain.published import find_published
from proofcast.testing.broker.publications import TOPIC, Publications, encode_published
from proofcast.testing.broker.serving import TOPICS, open_broker

WORDS = st.binary(min_size=32, max_size=32)


def build_move(log: Log, step: Step, turn: int, dice: random.Random) -> Move:
    block = BlockId(dice.randrange(10**9), dice.randbytes(32))
    place = (dice.randrange(10**6), None, log.address, b"".join(log.topics), log.data)
    record = Row(1, dice.randrange(10**5), "apply", "agreed", *block, dice.randrange(2**31), *place)
    return Move(step, record, 31_337, turn, View(block, 0))


@given(
    st.builds(Published, WORDS, st.integers(0, 2**64), WORDS | st.just(bytes(32)), st.binary(max_size=20), st.binary()),
    st.sampled_from((Step.APPLY, Step.UNDO)),
    st.integers(1, 3),
    st.sampled_from(list(Finality)),
)
def test_stored_log_gives_the_bytes_of_its_event(found: Published, step: Step, turn: int, level: Finality) -> None:
    log = encode_published(replace(found, publisher=found.publisher.rjust(20, b"\0")))
    move = build_move(log, step, turn, random.Random(found.payload))
    entry = Entry(move, level, BlockId(7, bytes(32)), found.topic, is_plain=True)
    assert is_published(move.record)
    assert entry.json == encode_structured(entry.delivery)
    assert entry.delivery.event.payload == found.payload
    assert parse_structured(entry.json) == entry.delivery


class Mixed(Publications):
    """Publications of two topics, some in another form than the contract's, and logs of other contracts."""

    def make_log(self) -> Log:
        log = replace(super().make_log(), address=self.random.choice((TOPICS, TOPICS, b"\7" * 20)))
        said = self.random.choice((log.topics[0], log.topics[0], HASH_BY_NAME["Delivered"]))
        topics = (said, self.random.choice((TOPIC, b"\5" * 32)), *log.topics[2:])
        return replace(log, topics=topics, data=log.data + self.random.choice((b"", b"", bytes(32))))


@pytest.mark.parametrize("seed", range(8))
def test_frames_of_a_way_are_those_of_its_entries(seed: int, tmp_path: Path) -> None:
    story, hub = Mixed(tmp_path, seed), Hub(tmp_path, TOPICS)
    held, applied, undone = hub.history.get_oldest(), 0, 0
    for _ in range(30):
        story.grow()
        way = hub.history.find_way(held, Finality.LATEST, story.random.randrange(1, 9))
        held = way.view
        for topic in (b"", TOPIC):
            entries = [
                one for one in hub.entries.build(way, Finality.LATEST) if one.topic and topic in (b"", one.topic)
            ]
            assert hub.entries.build_frames(way, Finality.LATEST, topic) == [one.frame for one in entries], seed
            applied += sum(one.move.step is Step.APPLY for one in entries)
            undone += sum(one.move.step is Step.UNDO for one in entries)
    assert applied > undone > 0, seed


@given(st.binary(max_size=200), st.integers(0, 500), st.integers(0, 255))
def test_other_form_is_not_mistaken_for_the_contracts_own(payload: bytes, at: int, value: int) -> None:
    """Whatever is changed: the quick reader gives what the ABI's reader gives, or leaves it to that."""
    log = encode_published(Published(bytes(32), 1, bytes(32), b"\3" * 20, payload))
    at %= len(log.data)
    changed = replace(log, data=log.data[:at] + bytes((value,)) + log.data[at + 1 :])
    quick = find_published(changed.topics, changed.data)
    assert quick is None or quick == find_event(changed.topics, changed.data)
    assert (quick is not None) == is_published(build_move(changed, Step.APPLY, 1, random.Random(1)).record)


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"start": "sequence:3"}, 400, "needs one topic to count in"),
        ({"start": "sequence:3", "topic": "nowhere"}, 400, "needs one topic to count in"),
        ({"start": "sequence:99", "topic": f"0x{TOPIC.hex()}"}, 503, "event `99` of the topic"),
    ],
)
def test_sequence_that_is_nowhere_is_refused(query: dict[str, str], status: int, message: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        Publications(tmp_path, 1).publish(5)
        async with open_broker(tmp_path) as url, aiohttp.request("GET", url + "/api/v1/events", params=query) as answer:
            assert answer.status == status
            assert message in (await answer.json(content_type=None))["title"]

    asyncio.run(scenario())


def test_start_at_a_sequence(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        story = Publications(tmp_path, 1)
        for _ in range(4):
            story.publish(5)
        query = {"start": "sequence:8", "topic": f"0x{TOPIC.hex()}"}
        async with open_broker(tmp_path) as url, aiohttp.request("GET", url + "/api/v1/events", params=query) as answer:
            return [int(event["sequence"]) for event in (await answer.json())["events"]]

    assert asyncio.run(scenario()) == list(range(8, 21))

"""Every event checked by its reader: what a broker changes, invents or leaves out is refused."""

import asyncio
import base64
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import orjson
import pytest

from proofcast.client.checking import Checker, Wanted
from proofcast.client.io.http import STREAM, Client, Subscription
from proofcast.client.lineage import TRUSTED, Lineage
from proofcast.client.reading import Reader
from proofcast.client.sse import EventParser, ServerEvent
from proofcast.errors import InvalidInput, ProofcastError, Unavailable
from proofcast.event import Event, Step
from proofcast.testing.broker.running import ChainFeed, run_broker
from proofcast.testing.feed.publishing import TOPICS_ADDRESS, PublishingChain

TOPICS = f"0x{TOPICS_ADDRESS.hex()}"


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[ChainFeed]:
    with open_feed(tmp_path) as feed:
        yield feed


@contextmanager
def open_feed(folder: Path) -> Iterator[ChainFeed]:
    chain = PublishingChain(5, finalized_depth=4)
    chain.mine(8)
    with ChainFeed(chain, folder) as feed:
        feed.follow()
        yield feed


def list_published(feed: ChainFeed) -> list[tuple[bytes, int]]:
    """Hash of the block and index of the log, of everything published on the chain as it is."""
    return [
        (block.hash, at)
        for block in feed.chain.canonical[2:]
        for at in range(len(block.logs))  # the first block creates the topics
    ]


def read(subscription: Subscription, held: list[tuple[bytes, int]], wanted: list[tuple[bytes, int]]) -> list[Event]:
    events: list[Event] = []
    for event in subscription if held != wanted else ():
        perform(held, event)
        events.append(event)
        if held == wanted:
            break
    return events


def perform(held: list[tuple[bytes, int]], event: Event) -> None:
    name = (event.position.block_hash, event.position.log_index)
    if event.step is Step.UNDO:
        assert held.pop() == name
    else:
        assert name not in held
        held.append(name)


# --- what is refused


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[ServerEvent], list[tuple[bytes, int]]]:
    """All that a true broker sends to somebody who reads from the beginning and verifies; and what was published."""
    with open_feed(tmp_path_factory.mktemp("recorded")) as feed, run_broker(feed.folder) as broker:
        return record(broker.url), list_published(feed)


@pytest.fixture
def frames(recorded: tuple[list[ServerEvent], list[tuple[bytes, int]]]) -> list[ServerEvent]:
    return recorded[0]


def record(url: str) -> list[ServerEvent]:
    found: list[ServerEvent] = []
    parser = EventParser()
    with httpx.stream("GET", url + STREAM, params={"start": "oldest", "evidence": "1"}) as response:
        for data in response.iter_raw():
            found += parser.receive(data)
            if len([frame for frame in found if frame.name == "heartbeat"]) == 2:
                return found
    raise AssertionError("the stream ended")


def receive(frames: list[ServerEvent], trusted: bytes = b"", contract: bytes = TOPICS_ADDRESS) -> list[Event]:
    reader = Reader({}, "oldest", Checker(Wanted(contract), Lineage(trusted)))
    data = [
        b"id: %s\nevent: %s\ndata: %s\n\n" % (frame.id.encode(), frame.name.encode(), frame.data) for frame in frames
    ]
    return [event for one in data for event in reader.receive(one)]


def test_true_stream_is_accepted(recorded: tuple[list[ServerEvent], list[tuple[bytes, int]]]) -> None:
    frames, published = recorded
    events = receive(frames)
    assert [(event.position.block_hash, event.position.log_index) for event in events] == published
    assert {event.trust for event in events} == {"linked"}


def test_every_event_left_out_is_noticed(frames: list[ServerEvent]) -> None:
    """Except the first of a topic, before which there may have been none, and the last, which may come yet."""
    applied = [at for at, frame in enumerate(frames) if frame.name == "apply"]
    for at in applied[2:-2]:
        with pytest.raises(InvalidInput, match=r"was next|without evidence|evidence is of|the log says"):
            receive(frames[:at] + frames[at + 1 :])


@pytest.mark.parametrize("name", ["headers", "evidence"])
def test_what_is_not_proven_is_refused(name: str, frames: list[ServerEvent]) -> None:
    for at, frame in enumerate(frames):
        if frame.name == name and any(later.name == "apply" for later in frames[at:]):
            with pytest.raises(InvalidInput):
                receive(frames[:at] + frames[at + 1 :])


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_changed_is_refused_or_changes_nothing(seed: int, frames: list[ServerEvent]) -> None:
    dice, truth = random.Random(seed), [event.position for event in receive(frames)]
    payloads = {event.position: event for event in receive(frames)}
    for at, frame in enumerate(frames):
        place = dice.randrange(len(frame.data))
        changed = frame.data[:place] + bytes((frame.data[place] ^ 1,)) + frame.data[place + 1 :]
        lie = [*frames[:at], ServerEvent(frame.name, changed, frame.id), *frames[at + 1 :]]
        try:
            events = receive(lie)
        except ProofcastError:
            continue
        assert [event.position for event in events] == truth, (seed, at)
        assert all(payloads[event.position] == event for event in events), (seed, at, place)


FIELDS: list[tuple[str, Callable[[str], str]]] = [
    ("data_base64", lambda value: base64.b64encode(b"other").decode()),
    ("publisher", lambda value: "0x" + "07" * 20),
    ("topic", lambda value: "0x" + "07" * 32),
    ("sequence", lambda value: value[:-1] + "9"),
    ("time", lambda value: "2030" + value[4:]),
    ("source", lambda value: value[:-2] + "77"),
]


@pytest.mark.parametrize(("field", "change"), FIELDS, ids=[field for field, _ in FIELDS])
def test_other_value_than_the_logs_is_refused(
    field: str, change: Callable[[str], str], frames: list[ServerEvent]
) -> None:
    at = next(at for at, frame in enumerate(frames) if frame.name == "apply")
    found = orjson.loads(frames[at].data)
    found[field] = change(found[field])
    lie = [*frames[:at], ServerEvent("apply", orjson.dumps(found), frames[at].id)]
    with pytest.raises(InvalidInput, match=r"the log says|was next"):
        receive(lie)


def test_other_contract_that_looks_like_ours_is_refused(frames: list[ServerEvent]) -> None:
    with pytest.raises(InvalidInput, match="nothing that was subscribed to"):
        receive(frames, contract=b"\7" * 20)


def test_chain_that_does_not_lead_to_the_trusted_block_is_refused(frames: list[ServerEvent]) -> None:
    with pytest.raises(InvalidInput, match="no header that came leads to block"):
        receive(frames, trusted=b"\7" * 32)


def test_other_number_of_the_trusted_block_is_refused(frames: list[ServerEvent]) -> None:
    """No header says it where reading begins with that block, but every receipt does."""
    names = "".join(frame.name[0] for frame in frames)
    at = names.index("eaa")  # evidence of a transaction, and two events of it
    found = orjson.loads(frames[at + 2].data)
    trusted, number = bytes.fromhex(found["blockhash"].removeprefix("0x")), int(found["blocknumber"])
    assert [event.trust for event in receive(frames[at : at + 3], trusted)] == [TRUSTED, TRUSTED]
    changed = frames[at + 2].data.replace(b"%012d" % number, b"%012d" % (number + 1))
    changed = changed.replace(f'"blocknumber":"{number}"'.encode(), f'"blocknumber":"{number + 1}"'.encode())
    with pytest.raises(InvalidInput, match=f"said to be of block `{number + 1}`"):
        receive([*frames[at : at + 2], ServerEvent("apply", changed, frames[at + 2].id)], trusted)


def test_newest_block_that_is_too_old_is_unavailable(feed: ChainFeed) -> None:
    """The simulated chain's clock stands in 2023."""
    with run_broker(feed.folder) as broker, Client(broker.url, topics=TOPICS) as client:
        subscription = client.subscribe(start="oldest", age_s_max=3600)
        with pytest.raises(Unavailable, match="the newest block is"):
            for _ in subscription:
                pass


# --- what is proven


@pytest.mark.parametrize("number", [0, 1, 2, 4, 8], ids="block {}".format)
def test_blocks_up_to_the_trusted_one_are_trusted(number: int, feed: ChainFeed) -> None:
    """Whether the trusted block lies before, within or behind what is read."""
    trusted, held = feed.chain.canonical[number], list[tuple[bytes, int]]()
    with run_broker(feed.folder) as broker, Client(broker.url, topics=TOPICS) as client:
        subscription = client.subscribe(start="oldest", trust=f"0x{trusted.hash.hex()}")
        events = read(subscription, held, list_published(feed))
    words = {event.position.block_number: event.trust for event in events}
    assert words == {at: TRUSTED if at <= number else "linked" for at in range(2, 9)}


def test_trusted_block_is_known_wherever_reading_begins(feed: ChainFeed) -> None:
    """Also where the very first event is in it: no header leads to what is trusted already."""
    trusted, published = feed.chain.canonical[4], list_published(feed)
    with run_broker(feed.folder) as broker, Client(broker.url, topics=TOPICS) as client:
        everything = client.subscribe(start="oldest")
        cursors = [everything.cursor for _ in everything.read_history()]
        for held, cursor in enumerate(cursors[:-1], start=1):
            rest = client.subscribe(start=cursor, trust=f"0x{trusted.hash.hex()}")
            words = {event.position.block_number: event.trust for event in read(rest, [], published[held:])}
            assert words == {at: TRUSTED if at <= 4 else "linked" for at in words}, held


def test_reading_through_reorgs_and_reconnecting(feed: ChainFeed) -> None:
    held: list[tuple[bytes, int]] = []
    with run_broker(feed.folder) as broker, Client(broker.url, topics=TOPICS) as client:
        subscription = client.subscribe(start="oldest")
        for depth in (0, 2, 3, 1):
            read(subscription, held, list_published(feed))
            feed.chain.reorg(depth)
            feed.follow()
        read(subscription, held, list_published(feed))


def test_async_for_reads_the_same(feed: ChainFeed) -> None:
    async def scenario(url: str) -> None:
        held: list[tuple[bytes, int]] = []
        async for event in Client(url, topics=TOPICS).subscribe(start="oldest"):
            perform(held, event)
            if held == list_published(feed):
                return

    with run_broker(feed.folder) as broker:
        asyncio.run(scenario(broker.url))


def test_named_subscription_goes_on_behind_what_was_acknowledged(feed: ChainFeed) -> None:
    """A program that died in between: what it had not acknowledged comes again, marked, and is verified again."""
    assert isinstance(feed.chain, PublishingChain)
    topic, seen = f"0x{feed.chain.ids[0].hex()}", list[int]()
    with run_broker(feed.folder) as broker, Client(broker.url, topics=TOPICS) as client:
        for _ in range(2):
            subscription = client.subscribe(topic, start="oldest", name="billing")
            for event in subscription:
                seen.append(event.sequence)
                if event.sequence % 4 == 3:
                    subscription.acknowledge()
                elif event.sequence % 4 == 1 and event.sequence > 1:
                    assert subscription.delivery.is_repeated == (len(seen) > 5 and event.sequence == 5)
                    break
            assert event.trust == "linked"
    assert seen == [1, 2, 3, 4, 5, 4, 5]

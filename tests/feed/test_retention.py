"""What is forgotten is final, old and whole; what is kept is served as before."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofcast.broker.io.http import Settings
from proofcast.broker.io.hub import Hub
from proofcast.errors import InvalidRequest
from proofcast.event import Finality
from proofcast.feed.io.database import FILE
from proofcast.feed.io.retention import Limits, Retention
from proofcast.feed.view import WHOLE_BLOCK, View
from proofcast.testing.broker.running import ChainFeed
from proofcast.testing.broker.serving import open_broker
from proofcast.testing.feed.publishing import TOPICS_ADDRESS, PublishingChain


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[ChainFeed]:
    chain = PublishingChain(4, finalized_depth=5)
    chain.mine(20)
    with ChainFeed(chain, tmp_path) as feed:
        feed.follow()
        yield feed


def list_numbers(feed: ChainFeed) -> list[int]:
    """Of the blocks whose events are served."""
    hub = Hub(feed.folder, TOPICS_ADDRESS)
    way = hub.history.find_way(hub.history.get_oldest(), Finality.LATEST)
    return sorted({entry.delivery.event.position.block_number for entry in hub.entries.build(way, Finality.LATEST)})


def test_what_is_not_final_is_kept(feed: ChainFeed) -> None:
    assert Retention(feed.folder).forget_before(2**40) == 14
    assert list_numbers(feed) == list(range(15, 21))
    feed.chain.reorg(5)
    feed.follow()
    assert list_numbers(feed) == list(range(15, 22))


def test_what_a_reader_has_not_passed_is_kept(feed: ChainFeed) -> None:
    feed.acknowledge("tables", 3)
    assert Retention(feed.folder).forget_before(2**40) == 0


def test_blocks_of_a_time_are_forgotten(feed: ChainFeed) -> None:
    assert Retention(feed.folder).forget_before(feed.chain.canonical[8].header.timestamp) == 7
    assert list_numbers(feed) == list(range(8, 21))


def test_names_stay_known(feed: ChainFeed) -> None:
    def list_names() -> list[str]:
        hub = Hub(feed.folder, TOPICS_ADDRESS)
        hub.entries.learn_names()
        return sorted(hub.catalogue.names.values())

    known = list_names()
    assert Retention(feed.folder).forget_before(2**40) == 14
    assert list_names() == known != []


def test_cursor_of_a_forgotten_block_is_refused(feed: ChainFeed) -> None:
    Retention(feed.folder).forget_before(feed.chain.canonical[8].header.timestamp)
    view = View(feed.chain.canonical[5].id, WHOLE_BLOCK)
    with pytest.raises(InvalidRequest, match="was never seen here"):
        Hub(feed.folder, TOPICS_ADDRESS).history.find_way(view, Finality.LATEST)


def test_broker_forgets_what_is_beyond_its_limits(feed: ChainFeed) -> None:
    async def scenario() -> None:
        async with open_broker(feed.folder, Settings(kept=Limits(days=1 / 86_400))):
            async with asyncio.timeout(60):
                while list_numbers(feed)[0] == 1:
                    await asyncio.sleep(0)

    asyncio.run(scenario())
    assert list_numbers(feed) == list(range(15, 21)), "blocks that are not final are kept"


def test_feed_is_kept_below_a_size(feed: ChainFeed) -> None:
    retention = Retention(feed.folder)
    assert retention.shrink(10**9) == 0
    assert retention.shrink((feed.folder / FILE).stat().st_size // 100) == 3
    assert list_numbers(feed)[0] == 4

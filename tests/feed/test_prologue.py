"""A feed that came late ends with what an early one has; whoever fills it is believed in nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proofcast.broker.io.evidence import EvidenceMaker
from proofcast.broker.io.hub import Hub
from proofcast.chain.evidence import verify_evidence
from proofcast.chain.io.source import open_source
from proofcast.cloudevents import compute_id
from proofcast.errors import InvalidInput, InvalidRequest
from proofcast.ethereum.bloom import LogFilter
from proofcast.event import Event, Finality
from proofcast.feed.io import prologue
from proofcast.feed.io.prologue import Prologue
from proofcast.testing.broker.running import ChainFeed
from proofcast.testing.chain import ChainSimulator, SimulatedNode
from proofcast.testing.feed.publishing import TOPICS_ADDRESS, PublishingChain

WANTED = LogFilter(frozenset({TOPICS_ADDRESS}))


@pytest.fixture
def chain() -> PublishingChain:
    chain = PublishingChain(9, finalized_depth=2)
    chain.mine(20)
    return chain


def read_all(folder: Path) -> list[Event]:
    hub = Hub(folder, TOPICS_ADDRESS)
    view, is_complete = hub.history.get_oldest(), False
    events: list[Event] = []
    while not is_complete:
        way = hub.history.find_way(view, Finality.LATEST, 7)
        events += [entry.delivery.event for entry in hub.entries.build(way, Finality.LATEST)]
        view, is_complete = way.view, way.is_complete
    return events


def fill(late: ChainFeed, first: int = 1) -> None:
    filling = Prologue(open_source(late.node.url), late.folder, WANTED)
    while filling.fill_stretch(first):
        pass


@pytest.fixture
def late(chain: PublishingChain, tmp_path: Path) -> Iterator[ChainFeed]:
    with ChainFeed(chain, tmp_path / "late", first=12) as late:
        late.follow()
        yield late


def test_other_chain_is_refused(late: ChainFeed) -> None:
    other = ChainSimulator(1, chain_id=5)
    refused = pytest.raises(InvalidRequest, match="is on chain `5`, the feed on `31337`")
    with SimulatedNode(other) as node, refused:
        Prologue(open_source(node.url), late.folder, WANTED)


def test_other_past_than_the_checkpoints_is_refused(late: ChainFeed) -> None:
    forged = PublishingChain(10)
    forged.mine(20)
    with SimulatedNode(forged) as node, pytest.raises(InvalidInput, match="the hash of block `12`"):
        Prologue(open_source(node.url), late.folder, WANTED).fill_stretch(1)
    assert read_all(late.folder)[0].position.block_number == 13


@pytest.mark.parametrize("stretch", [3, 256])
def test_late_feed_ends_with_the_early_ones_events(
    stretch: int, chain: PublishingChain, late: ChainFeed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V-B.3 of the paper: a broker started long after the contract has the same store."""
    monkeypatch.setattr(prologue, "STRETCH", stretch)
    with ChainFeed(chain, tmp_path / "early") as early:
        early.follow()
        fill(late)
        chain.reorg(1)
        for feed in (early, late):
            feed.follow()
    assert read_all(late.folder) == read_all(early.folder)
    assert len(read_all(late.folder)) == sum(chain.published[chain.head.hash].values())


def test_evidence_reaches_back_before_the_feed_began(chain: PublishingChain, late: ChainFeed) -> None:
    fill(late)
    first, maker = read_all(late.folder)[0], EvidenceMaker(late.folder)
    assert first.position.block_number == 2
    proven = verify_evidence(maker.build(compute_id(first, 1), chain.head.hash), chain.head.hash)
    assert proven.block_hash == chain.canonical[2].hash


def test_broker_learns_names_of_topics_that_are_older_than_the_feed(late: ChainFeed) -> None:
    hub = Hub(late.folder, TOPICS_ADDRESS)
    hub.entries.learn_names()
    assert hub.catalogue.names == {}
    fill(late)
    hub.entries.learn_names()
    assert sorted(hub.catalogue.names.values()) == ["topic 0", "topic 1"]


def test_interrupted_filling_goes_on(late: ChainFeed) -> None:
    fill(late, first=8)
    assert read_all(late.folder)[0].position.block_number == 8
    fill(late, first=3)
    assert read_all(late.folder)[0].position.block_number == 3
    fill(late, first=5)
    assert read_all(late.folder)[0].position.block_number == 3

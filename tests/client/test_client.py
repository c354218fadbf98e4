"""The SDK against real brokers on loopback."""

from pathlib import Path

import pytest

from proofcast.chain.evidence import verify_evidence
from proofcast.chain.io.source import open_source
from proofcast.client.io.http import Client, Subscription
from proofcast.client.sse import EventParser
from proofcast.cloudevents import compute_id
from proofcast.errors import InvalidRequest, Unavailable
from proofcast.event import Finality, Step
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.testing.broker.running import run_broker
from proofcast.testing.chain import ChainSimulator, SimulatedNode
from proofcast.testing.feed.plain import match_steps
from proofcast.testing.feed.story import START, LogName, Story

ANY = "0x" + bytes(20).hex()


def read_until(held: list[LogName], subscription: Subscription, wanted: list[LogName]) -> None:
    if held == wanted:
        return
    for event in subscription:
        name = (event.position.block_hash, event.position.log_index)
        if event.step is Step.UNDO:
            assert held.pop() == name
        else:
            assert name not in held, "delivered twice"
            held.append(name)
        if held == wanted:
            return


def test_no_broker_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no broker is named"):
        Client([])


def test_refusal_is_told_in_the_brokers_words(tmp_path: Path) -> None:
    Story(tmp_path, 1).grow()
    refused = pytest.raises(InvalidRequest, match="`soon` is no finality")
    with run_broker(tmp_path) as broker, Client(broker.url) as client, refused:
        next(iter(client.subscribe(finality="soon")))


def test_silence_beyond_the_limit_is_unavailable() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(Unavailable, match="has not been told by any broker"):
        next(iter(client.subscribe(age_s_max=1)))


def test_brokers_that_cannot_prove_are_not_asked_for_ever(tmp_path: Path) -> None:
    """A story's blocks were never kept: who verifies is told so, in the broker's words."""
    story = Story(tmp_path, 5)
    story.adopt([story.make_block(START, [story.make_log()])])
    refused = pytest.raises(Unavailable, match="kept here")
    with run_broker(tmp_path) as broker, Client(broker.url) as client, refused:
        next(iter(client.subscribe(contract=ANY, start="oldest")))


def test_reading_through_reorgs(tmp_path: Path) -> None:
    story, held = Story(tmp_path, 5), list[LogName]()
    with run_broker(tmp_path) as broker, Client(broker.url) as client:
        subscription = client.subscribe(contract=ANY, start="oldest", verify=False)
        for _ in range(8):
            story.grow()
            read_until(held, subscription, story.list_logs(Finality.LATEST))


def test_fail_over_has_no_gap_and_no_repeat(tmp_path: Path) -> None:
    """Two brokers that share nothing see different branches; the first is killed, the second goes on."""
    one, two = Story(tmp_path / "one", 1), Story(tmp_path / "two", 2)
    common = [one.make_block(START, [one.make_log(), one.make_log()])]
    two.logs |= one.logs
    for story in (one, two):
        story.adopt(common)
    one.adopt([one.make_block(common[0].id, [one.make_log()])])
    two.adopt([two.make_block(common[0].id, [two.make_log(), two.make_log()])])
    held = list[LogName]()
    with (
        run_broker(tmp_path / "one") as first,
        run_broker(tmp_path / "two") as second,
        Client([first.url, second.url]) as client,
    ):
        subscription = client.subscribe(contract=ANY, start="oldest", verify=False)
        read_until(held, subscription, one.list_logs(Finality.LATEST))
        first.stop()
        read_until(held, subscription, two.list_logs(Finality.LATEST))


@pytest.mark.parametrize("event_id", ["x", "1/2/3/4/apply", f"1/{0:012}/{0:06}/{'0' * 64}/apply"])
def test_evidence_of_nothing_is_refused(event_id: str, tmp_path: Path) -> None:
    Story(tmp_path, 1).grow()
    refused = pytest.raises((InvalidRequest, Unavailable), match=r"no event's id|not kept here")
    with run_broker(tmp_path) as broker, Client(broker.url) as client, refused:
        client.get_evidence(event_id)


def test_evidence_of_every_event_holds_long_after_its_block_is_final(tmp_path: Path) -> None:
    """The chain is far ahead and has dropped other blocks; evidence needs neither it nor a node."""
    chain = ChainSimulator(11)
    chain.mine(3)
    with SimulatedNode(chain) as node:
        follower = FeedFollower(open_source(node.url), tmp_path, chain.canonical[0].id)
        for _ in range(3):
            follower.poll()
            Journal(tmp_path).acknowledge("outbox", match_steps(Journal(tmp_path), Outbox(tmp_path)))
            chain.mine(12)
    contracts = {log.address for block in chain.canonical for log in block.logs}
    checked = 0
    with run_broker(tmp_path) as broker, Client(broker.url) as client:
        for contract in contracts:
            subscription = client.subscribe(contract=f"0x{contract.hex()}", start="oldest", finality="finalized")
            event = next(iter(subscription))
            proven = verify_evidence(client.get_evidence(compute_id(event, 1)), event.position.block_hash)
            assert (proven.log.address, proven.log.data) == (contract, event.payload)
            checked += 1
    assert checked > 1


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_stream_is_read_however_it_is_cut(size: int) -> None:
    text = b": comment\nid: 7\nevent: apply\ndata: a\ndata: b\r\n\n\nevent: empty\n\ndata:c\n\n"
    parser = EventParser()
    events = [event for at in range(0, len(text), size) for event in parser.receive(text[at : at + size])]
    assert [(event.name, event.data, event.id) for event in events] == [("apply", b"a\nb", "7"), ("message", b"c", "")]

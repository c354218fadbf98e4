"""`proofcast event` and `proofcast topic audit`, against a chain and a broker."""

import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from proofcast.cli import main
from proofcast.onchain import topics
from proofcast.onchain.events import TopicCreated
from proofcast.onchain.io.publishing import publish
from proofcast.onchain.io.reading import encode_hex
from proofcast.onchain.request import ask
from proofcast.testing.broker.running import NodeFeed, RunningBroker, run_broker
from proofcast.testing.onchain import Playground, run_playground

pytestmark = [pytest.mark.needs("anvil"), pytest.mark.slow]


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    with run_playground(tmp_path_factory.mktemp("deployer")) as playground:
        yield playground


@pytest.fixture(scope="module")
def topic(playground: Playground) -> bytes:
    receipt = playground.send(ask(playground.topics, topics.create("flights")))
    for number in (1, 2, 3):
        publish_one(playground, receipt.get_event(playground.topics, TopicCreated).topic, f"LH {number}")
    return receipt.get_event(playground.topics, TopicCreated).topic


def publish_one(playground: Playground, topic: bytes, words: str) -> None:
    sender = playground.open_sender()
    publish(sender, playground.contracts, topic, words.encode(), idempotency_key=words, payee=sender.address)


@pytest.fixture(scope="module")
def feed(playground: Playground, topic: bytes, tmp_path_factory: pytest.TempPathFactory) -> NodeFeed:
    feed = NodeFeed(playground.chain.url, tmp_path_factory.mktemp("feed"))
    feed.follow()
    return feed


@pytest.fixture(scope="module")
def broker(feed: NodeFeed, playground: Playground) -> Iterator[RunningBroker]:
    with run_broker(feed.folder, playground.topics) as broker:
        yield broker


@dataclass(frozen=True, slots=True)
class Printed:
    exit_code: int
    out: str
    err: str


def run(*words: str) -> Printed:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        exit_code = main(list(words))
    return Printed(exit_code, out.getvalue(), err.getvalue())


def get_head(playground: Playground) -> str:
    return str(playground.rpc.call("eth_getBlockByNumber", "latest", False)["hash"])


def test_event_is_followed_shown_and_verified_offline(
    playground: Playground, broker: RunningBroker, topic: bytes, tmp_path: Path
) -> None:
    """Every id that is printed can be asked for, and its evidence leads to the newest block."""
    words = (
        "event",
        "tail",
        encode_hex(topic),
        "--broker",
        broker.url,
        "--start",
        "sequence:2",
        "--count",
        "2",
        "--json",
    )
    events = [json.loads(line) for line in run(*words).out.splitlines()]
    assert [(event["sequence"], event["trust"]) for event in events] == [(2, "linked"), (3, "linked")]
    event_id, head, file = str(events[0]["id"]), get_head(playground), tmp_path / "evidence"
    assert run("event", "evidence", event_id, str(file), "--broker", broker.url, "--trust", head).exit_code == 0
    verified = run("event", "verify", str(file), "--trust", head)
    assert "an ancestor of the block you trust" in verified.out
    assert "event 2 of topic" in verified.out
    assert '"LH 2"' in verified.out
    shown = run("event", "show", event_id, "--broker", broker.url)
    assert "this log is in this block, which you trust" in shown.out
    refused = run("event", "verify", str(file), "--trust", f"0x{'07' * 32}")
    assert (refused.exit_code, "expected was `0x0707" in refused.err) == (1, True)


@pytest.mark.parametrize("event_id", ["x", "1/2/3/4/apply"])
def test_what_is_no_id_is_refused(event_id: str, broker: RunningBroker) -> None:
    assert run("event", "show", event_id, "--broker", broker.url).exit_code == 2


def audit(playground: Playground, broker: RunningBroker, topic: bytes, *words: str) -> Printed:
    return run("topic", "audit", encode_hex(topic), "--broker", broker.url, "--rpc-url", playground.chain.url, *words)


def test_audit_proves_that_nothing_is_missing(
    playground: Playground, broker: RunningBroker, topic: bytes, feed: NodeFeed
) -> None:
    before = get_head(playground)
    assert "1 to 3, each verified, none missing" in audit(playground, broker, topic, "--trust", before).out
    publish_one(playground, topic, "LH 4")
    feed.follow()
    assert "1 to 4, each verified, none missing" in audit(playground, broker, topic).out
    assert "1 to 3, each verified, none missing" in audit(playground, broker, topic, "--trust", before).out


def test_audit_notices_a_first_event_that_is_not_there(playground: Playground, topic: bytes, tmp_path: Path) -> None:
    """A broker that began after the topic's first event has events that follow one another, and not all of them."""
    late = NodeFeed(playground.chain.url, tmp_path, first=find_block(playground, topic, 2) - 1)
    late.follow()
    with run_broker(tmp_path, playground.topics) as broker:
        refused = audit(playground, broker, topic)
    assert (refused.exit_code, "the broker has events `2` to" in refused.err) == (1, True)


def find_block(playground: Playground, topic: bytes, sequence: int) -> int:
    wanted = [None, encode_hex(topic), encode_hex(sequence.to_bytes(32))]
    logs = playground.rpc.call(
        "eth_getLogs", {"fromBlock": "0x0", "address": encode_hex(playground.topics), "topics": wanted}
    )
    return int(logs[0]["blockNumber"], 16)


def test_late_broker_has_the_whole_past_after_backfill(playground: Playground, topic: bytes, tmp_path: Path) -> None:
    """V-B.3 of the paper: a broker that is started long after the contract finds the deployment block itself."""
    head = int(playground.rpc.call("eth_blockNumber"), 16)
    late = NodeFeed(playground.chain.url, tmp_path, first=head)
    late.follow()
    with run_broker(tmp_path, playground.topics) as broker:
        filled = run("feed", "backfill", "--feed", str(tmp_path), "--source", playground.chain.url)
        assert filled.out.startswith("everything from block ")
        words = ("event", "tail", "flights", "--broker", broker.url, "--start", "oldest", "--count", "3", "--json")
        assert [json.loads(line)["sequence"] for line in run(*words).out.splitlines()] == [1, 2, 3]
        assert "each verified, none missing" in audit(playground, broker, topic).out

"""A broker's events through the overlay to a peer without any broker, the gateway killed again and again."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from proofcast.cli import main
from proofcast.client.checking import Wanted
from proofcast.client.io.http import Client
from proofcast.errors import InvalidRequest, Unavailable
from proofcast.gateway.io import carrying
from proofcast.gateway.io.outbox import CarryingStore
from proofcast.overlay.io.control import ask
from proofcast.overlay.io.options import SOCKET_NAME
from proofcast.testing.broker.running import ChainFeed, run_broker
from proofcast.testing.feed.publishing import TOPICS_ADDRESS, PublishingChain
from proofcast.testing.overlay.processes import start_peer

EVENTS = 30
TOPICS = f"0x{TOPICS_ADDRESS.hex()}"


def test_store_of_another_topic_is_refused(tmp_path: Path) -> None:
    CarryingStore(tmp_path / "gateway.sqlite", "flights at finalized").close()
    with pytest.raises(InvalidRequest, match="belongs to a gateway of `flights at finalized`"):
        CarryingStore(tmp_path / "gateway.sqlite", "trains at finalized")


def test_full_disk_is_told(tmp_path: Path) -> None:
    store = CarryingStore(tmp_path / "gateway.sqlite", "flights")
    store._database.execute("PRAGMA max_page_count = 8")
    with pytest.raises(Unavailable, match="database or disk is full"):
        store.add("one", "flights T", bytes(100_000))
    assert (store.get_cursor(), store.count()) == ("", 0)
    store.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_gateway_does_not_wait_for_a_reader_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrying, "subscribe", lambda *_: 1 / 0)
    carriage = carrying.Carriage(tmp_path, "flights", "flights", Wanted(b"t" * 20), "oldest", "latest", bytes(32))
    with Client("http://127.0.0.1:1") as client, pytest.raises(AssertionError, match="a fault of ours"):
        next(carrying.carry(client, carriage, print))


def test_what_waits_is_kept_with_its_number(tmp_path: Path) -> None:
    store = CarryingStore(tmp_path / "gateway.sqlite", "flights")
    store.add("one", "flights T", b"1")
    store.add("two", "flights T", b"2")
    store.remove(1)
    store.close()
    again = CarryingStore(tmp_path / "gateway.sqlite", "flights")
    assert (again.session, again.get_cursor()) == (store.session, "two")
    assert [(one.sequence, one.payload) for one in again.read(9)] == [(2, b"2")]
    again.remove(2)
    again.add("three", "flights T", b"3")
    assert [one.sequence for one in again.read(9)] == [3], "a number is never used twice"
    again.close()


def test_topics_without_a_word_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "from-broker", "fl*"]) == 2
    assert "say with `--word`" in capsys.readouterr().err


@pytest.mark.slow
def test_every_event_arrives_once_and_proven_wherever_the_gateway_is_killed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    chain = PublishingChain(3, topics=1, transactions=1, events_each=1, finalized_depth=1)
    chain.mine(EVENTS + 1)
    topic, trusted = f"0x{chain.ids[0].hex()}", f"0x{chain.canonical[EVENTS // 2].hash.hex()}"
    near, far = tmp_path / "near", tmp_path / "far"
    with (
        ChainFeed(chain, tmp_path / "feed") as feed,
        run_broker(feed.folder) as broker,
        start_peer(near) as address,
        start_peer(far, "--bootstrap", address),
    ):
        feed.follow()
        ask(far / SOCKET_NAME, {"do": "subscribe", "predicate": "news T"})
        words = ("gateway", "from-broker", topic, "--word", "news", "--start", "oldest", "--finality", "latest")
        command = (*words, "--broker", broker.url, "--state", str(near), "--trust", trusted, "--topics", TOPICS)
        while left := count_left(near, topic):
            run_and_kill(command, dice.randint(min(left, 5), min(left, 14)))
        assert main(["peer", "publish", "--state", str(near), "news T"]) == 0
        while ask(far / SOCKET_NAME, {"do": "status"})["delivered"] <= EVENTS:
            pass
        capfd.readouterr()
        seen = ("peer", "subscribe", "--state", str(far), "--json", "--count", str(EVENTS))
        assert main([*seen, "--trust", trusted, "--topics", TOPICS, "news T"]) == 0
        proven = [json.loads(line)["proven"] for line in capfd.readouterr().out.splitlines()]
        assert sorted(one["sequence"] for one in proven) == list(range(1, EVENTS + 1))
        assert {one["block"]: one["trust"] for one in proven} == {
            number: "trusted" if number <= EVENTS // 2 else "linked" for number in range(2, EVENTS + 2)
        }
        assert ask(far / SOCKET_NAME, {"do": "status"})["delivered"] == EVENTS + 1


def count_left(state: Path, topic: str) -> int:
    """Events that the overlay has not accepted yet."""
    store = CarryingStore(state / "gateway/outbox.sqlite", f"{topic} at latest")
    left = EVENTS - store.get_last() + store.count()
    store.close()
    return left


def run_and_kill(command: tuple[str, ...], lines: int) -> None:
    """Let it hand over so many events, and kill it."""
    with subprocess.Popen([sys.executable, "-m", "proofcast.cli", *command], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout
        for _ in range(lines):
            assert one.stdout.readline(), "it has ended by itself"
        one.kill()

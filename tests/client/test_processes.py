"""The SDK against brokers that are processes of their own, and programs that are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proofcast.client.io.http import Client
from proofcast.event import Step
from proofcast.onchain import lens, topics
from proofcast.onchain.events import Delivered, TopicCreated
from proofcast.onchain.io.publishing import publish
from proofcast.onchain.io.reading import read
from proofcast.onchain.io.sender import Stage
from proofcast.onchain.outcome import Outcome
from proofcast.onchain.request import ask
from proofcast.testing.broker.running import ChainFeed, NodeFeed, run_broker
from proofcast.testing.feed.publishing import TOPICS_ADDRESS, PublishingChain
from proofcast.testing.onchain import Playground, run_playground

TOPICS = f"0x{TOPICS_ADDRESS.hex()}"
SCRIPT = Path(__file__).parent / "dying_reactor.py"
DIED = 3
PROCESS_S_MAX = 60
"""A process that hangs must not hang the tests."""


class BrokerProcess:
    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "proofcast.cli", "broker", "serve", "--feed", str(folder), "--port", "0"]
        self._process = subprocess.Popen([*command, "--topics", TOPICS], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr
        line = next(line for line in self._process.stderr if "http://" in line)
        self.url = line[line.index("http://") :].split("/api")[0]

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PROCESS_S_MAX)
        assert self._process.stderr
        self._process.stderr.close()


@contextmanager
def run_process(folder: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(folder)
    try:
        yield process
    finally:
        process.kill()


@pytest.mark.slow
def test_killed_broker_is_replaced_without_gap_or_repeat(tmp_path: Path) -> None:
    """Two brokers that share nothing but the chain; every event is verified by its reader."""
    chain = PublishingChain(3, finalized_depth=4)
    chain.mine(6)
    held: list[tuple[bytes, int]] = []
    with ChainFeed(chain, tmp_path / "one") as one, ChainFeed(chain, tmp_path / "two") as two:
        one.follow()
        two.follow()
        with run_process(one.folder) as first, run_process(two.folder) as second:
            client = Client([first.url, second.url], topics=TOPICS)
            for number, event in enumerate(client.subscribe(start="oldest"), start=1):
                name = (event.position.block_hash, event.position.log_index)
                if event.step is Step.UNDO:
                    assert held.pop() == name
                else:
                    assert name not in held, "delivered twice"
                    held.append(name)
                if number == 5:
                    first.kill()
                    chain.reorg(2)
                    two.follow()
                if held == [(block.hash, at) for block in chain.canonical[2:] for at in range(len(block.logs))]:
                    break


# --- the off-chain subscribers of the paper, section V-A.2


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    with run_playground(tmp_path_factory.mktemp("deployer")) as playground:
        yield playground


def create_topic(playground: Playground, name: str) -> bytes:
    return playground.send(ask(playground.topics, topics.create(name))).get_event(playground.topics, TopicCreated).topic


def count(playground: Playground, topic: bytes) -> int:
    return read(playground.rpc, playground.lens, lens.get_topic(topic)).sequence


@pytest.mark.needs("anvil")
@pytest.mark.slow
def test_monitor_and_react_sends_one_transaction_per_event(playground: Playground, tmp_path: Path) -> None:
    """`When a new event is received, the Sub_O relays that event to the desired smart contract in a subsequent
    transaction`: here also when it is killed at every stage of sending, and started again.
    """
    asked, answers = create_topic(playground, "questions"), create_topic(playground, "answers")
    sender = playground.open_sender()
    for number in range(3):
        key = f"{asked.hex()} {number}"
        publish(sender, playground.contracts, asked, key.encode(), idempotency_key=key, payee=sender.address)
    feed = NodeFeed(playground.chain.url, tmp_path / "feed")
    feed.follow()
    with run_broker(feed.folder, playground.topics) as broker:
        for fatal in (Stage.JOURNALLED, Stage.SENT, Stage.MINED):
            assert run_reactor(playground, broker.url, asked, answers, tmp_path / "state", fatal).wait(60) == DIED
        last = run_reactor(playground, broker.url, asked, answers, tmp_path / "state", "never")
        await_answers(playground, answers, 3, last)
    assert count(playground, answers) == 3


@pytest.mark.needs("anvil")
@pytest.mark.slow
def test_hybrid_subscriber_acts_in_the_transaction_and_after_it(playground: Playground, tmp_path: Path) -> None:
    """`a minimal Sub_C performs critical updates ... Following this, the Sub_O can send a transaction to complete any
    remaining tasks`.
    """
    asked, answers = create_topic(playground, "alarms"), create_topic(playground, "done")
    playground.join(playground.create("Counter"), asked)
    sender = playground.open_sender()
    receipt = publish(sender, playground.contracts, asked, b"fire", idempotency_key=asked.hex(), payee=sender.address)
    assert receipt.get_event(playground.topics, Delivered).outcomes[0] is Outcome.DELIVERED
    feed = NodeFeed(playground.chain.url, tmp_path / "feed")
    feed.follow()
    with run_broker(feed.folder, playground.topics) as broker:
        reactor = run_reactor(playground, broker.url, asked, answers, tmp_path / "state", "never")
        await_answers(playground, answers, 1, reactor)


def await_answers(playground: Playground, answers: bytes, wanted: int, reactor: subprocess.Popen[bytes]) -> None:
    """Until there are as many, or the reactor has died; then end it."""
    while count(playground, answers) < wanted and reactor.poll() is None:
        pass
    reactor.kill()
    reactor.wait(PROCESS_S_MAX)


def run_reactor(
    playground: Playground, broker: str, asked: bytes, answers: bytes, folder: Path, fatal: str
) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        str(SCRIPT),
        broker,
        playground.chain.url,
        f"0x{asked.hex()}",
        answers.hex(),
        str(folder),
    ]
    environment = os.environ | {"PROOFCAST_PRIVATE_KEY": playground.chain.accounts[0].private_key, "FATAL": fatal}
    return subprocess.Popen(command, env=environment)

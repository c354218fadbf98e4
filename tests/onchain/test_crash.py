"""A process that publishes is killed at each step; whoever repeats the call publishes once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proofcast.onchain import lens, topics
from proofcast.onchain.events import TopicCreated
from proofcast.onchain.io.reading import read
from proofcast.onchain.io.sender import Stage
from proofcast.onchain.request import ask
from proofcast.testing.onchain import Playground

pytestmark = pytest.mark.needs("anvil")

SCRIPT = Path(__file__).parent / "crashing_publisher.py"
DIED = 3
PROCESS_S_MAX = 60
"""A process that hangs must not hang the tests."""


def run(playground: Playground, topic: bytes, fatal: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), playground.chain.url, str(playground.folder), topic.hex(), fatal]
    environment = os.environ | {"PROOFCAST_PRIVATE_KEY": playground.chain.accounts[0].private_key}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PROCESS_S_MAX, check=False)


def create_topic(playground: Playground) -> bytes:
    receipt = playground.open_sender().send(ask(playground.topics, topics.create("flights")), "create")
    return receipt.get_event(playground.topics, TopicCreated).topic


def count_events(playground: Playground, topic: bytes) -> int:
    return read(playground.rpc, playground.lens, lens.get_topic(topic)).sequence


@pytest.mark.parametrize(("fatal", "events_left_behind"), [(Stage.JOURNALLED, 0), (Stage.SENT, 1), (Stage.MINED, 1)])
def test_retry_after_a_crash_publishes_once(playground: Playground, fatal: Stage, events_left_behind: int) -> None:
    topic = create_topic(playground)
    assert run(playground, topic, fatal).returncode == DIED
    assert count_events(playground, topic) == events_left_behind

    retried, again = run(playground, topic, "never"), run(playground, topic, "never")
    assert (retried.returncode, retried.stderr) == (0, "")
    assert retried.stdout == again.stdout
    assert count_events(playground, topic) == 1


def test_next_call_sends_what_a_crash_left_in_the_journal(playground: Playground) -> None:
    """Its nonce lies below ours: without it nothing of this key would ever be mined."""
    topic = create_topic(playground)
    assert run(playground, topic, Stage.JOURNALLED).returncode == DIED
    playground.open_sender().send(ask(playground.topics, topics.create("another")), "unrelated")
    assert count_events(playground, topic) == 1
    assert run(playground, topic, "never").returncode == 0
    assert count_events(playground, topic) == 1


def test_processes_share_one_key(playground: Playground) -> None:
    topic = create_topic(playground)
    command = [sys.executable, str(SCRIPT), playground.chain.url, str(playground.folder), topic.hex(), "never"]
    environment = os.environ | {"PROOFCAST_PRIVATE_KEY": playground.chain.accounts[0].private_key}
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=PROCESS_S_MAX) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert len({out for out, _ in said}) == 1
    assert count_events(playground, topic) == 1

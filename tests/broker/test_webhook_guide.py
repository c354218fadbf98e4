"""The guide's receiver, as it stands there, against a broker; and every command of `proofcast subscription`."""

import base64
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from proofcast.cli import proofcast
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.testing.broker.killing import FILTER, BrokerProcess
from proofcast.testing.feed.story import START, Story

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes, ok").decode()


def read_receiver(root: Path) -> str:
    page = (root / "docs/guides/webhooks.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return str(block)


@contextmanager
def run_receiver(root: Path, folder: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "receiver.py").write_text(read_receiver(root))
    command = [sys.executable, str(folder / "receiver.py"), str(port)]
    with subprocess.Popen(
        command, env={"WEBHOOK_SECRET": SECRET}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        is_listening = False
        while not is_listening:
            with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                is_listening = True
        yield f"http://127.0.0.1:{port}/", process
        process.kill()


def run(broker: str, *arguments: str) -> str:
    outcome = CliRunner().invoke(proofcast, ["subscription", *arguments, "--broker", broker])
    if outcome.exception:
        raise outcome.exception
    return outcome.stdout


@pytest.mark.slow
def test_guide_s_receiver_takes_what_a_broker_sends(root: Path, tmp_path: Path) -> None:
    story = Story(tmp_path, 1)
    story.adopt([story.make_block(START, [story.make_log(), story.make_log()])])
    (tmp_path / "secret").write_text(SECRET + "\n")
    broker = BrokerProcess(tmp_path, str(tmp_path / "broker.sqlite"))
    broker.start()
    try:
        with run_receiver(root, tmp_path) as (url, receiver):
            options = ["--start", "oldest", "--contract", FILTER["contract"], "--secret-file", str(tmp_path / "secret")]
            made = run(broker.url, "create", "billing", "--transport", "webhook", "--url", url, *options)
            assert SECRET not in made
            assert receiver.stdout is not None
            lines = [receiver.stdout.readline().split() for _ in range(2)]
            assert [line[0] for line in lines] == ["org.proofcast.event.apply"] * 2
            assert run(broker.url, "test", "billing") == "taken\n"
            use_commands(broker.url)
    finally:
        broker.kill()


def use_commands(broker: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        run(broker, "create", "billing")
    assert refused.value.reason is Reason.ALREADY_EXISTS
    assert json.loads(run(broker, "pause", "billing", "--json"))["status"] == "paused"
    assert "paused" in run(broker, "list")
    assert json.loads(run(broker, "rewind", "billing", "oldest", "--json"))["pending"] == 0
    assert json.loads(run(broker, "resume", "billing", "--json"))["status"] == "active"
    assert run(broker, "redrive", "billing").startswith("0 sent again")
    assert json.loads(run(broker, "show", "billing", "--deliveries", "5", "--json"))["name"] == "billing"
    run(broker, "delete", "billing")
    assert run(broker, "list") == "no subscriptions\n"
    with pytest.raises(InvalidRequest) as refused:
        run(broker, "show", "billing")
    assert refused.value.reason is Reason.UNKNOWN_SUBSCRIPTION


@pytest.mark.parametrize("broker", ["http://127.0.0.1:9", "nonsense"])
def test_broker_that_does_not_answer(broker: str) -> None:
    with pytest.raises(Unavailable):
        run(broker, "list")

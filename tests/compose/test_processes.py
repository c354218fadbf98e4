"""Real processes, without Spark: a chain and a broker that serves an empty feed."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from proofcast.cli import main
from proofcast.onchain.io.devchain import run_dev_chain
from proofcast.pipeline.io.lock import held

END_S_MAX = 60
pytestmark = [pytest.mark.slow, pytest.mark.needs("anvil")]

PROGRAM = """
import asyncio, sys
from pathlib import Path
from proofcast.cli.up import choose_port
from proofcast.compose.io.processes import Processes
from proofcast.compose.plan import PIPELINE, Wishes, build_plan

folder = Path(sys.argv[1])
wishes = Wishes(folder, "127.0.0.1", choose_port("127.0.0.1", 0), choose_port("127.0.0.1", 0))
plan = [component for component in build_plan(wishes) if component.name != PIPELINE]
say = lambda name, text: print(name, text, flush=True)
failure = asyncio.run(Processes(plan, folder, {**__import__("os").environ}, say, lambda: say("all", "ready")).run())
sys.exit(failure.message if failure else 0)
"""


@dataclass(slots=True)
class Running:
    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)

    def wait_for(self, words: str) -> str:
        """The next line that holds the words."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.said.append(line.strip())
            if words in line:
                return line
        raise AssertionError(f"`{words}` was never said: {self.said}")

    def find_child(self, words: str) -> int:
        """Process id of the child whose command line holds the words."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(
            int(one) for one in children if words in Path(f"/proc/{one}/cmdline").read_text().replace("\0", " ")
        )


@contextmanager
def run_two(folder: Path) -> Iterator[Running]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    watchdog = threading.Timer(120, process.kill)  # a test that hangs fails instead
    watchdog.start()
    try:
        yield Running(process)
    finally:
        watchdog.cancel()
        process.terminate()
        process.communicate()


# --- refusals


def test_taken_port_is_refused_before_anything_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["up", "--data", str(tmp_path / "data"), "--port", str(port), "--chain-port", "0"]) == 2
    assert f"`127.0.0.1:{port}` cannot be listened at" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_folder_of_another_one_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with held(str(tmp_path)):
        assert main(["up", "--data", str(tmp_path), "--port", "0", "--chain-port", "0"]) == 2
    assert "another `proofcast up` runs on" in capsys.readouterr().err


def test_chain_without_the_contract_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_dev_chain() as chain:
        assert main(["up", "--data", str(tmp_path / "data"), "--port", "0", "--rpc", chain.url]) == 2
    sentence, hint = capsys.readouterr().err.splitlines()[-2:]
    assert "`Topics`" in sentence
    assert hint.startswith("hint: ")


# --- the usual way


def test_dead_child_is_started_again_and_all_end_in_order(tmp_path: Path) -> None:
    with run_two(tmp_path) as running:
        url = re.findall(r"http://[\d.:]+", running.wait_for("broker ready"))[0]
        running.wait_for("all ready")
        os.kill(running.find_child("broker serve"), signal.SIGKILL)
        running.wait_for("broker died with code -9; it is started again")
        assert running.wait_for("broker ready").count(url) == 1, "it must be found where it was"
        assert httpx.get(f"{url}/healthz", trust_env=False).is_success
        running.process.terminate()
        running.wait_for("broker ended")
        running.wait_for("chain ended")
        assert running.process.wait() == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz", trust_env=False)
    assert "events at" in (tmp_path / "broker.log").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died: use Linux")
def test_killed_parent_leaves_nobody_behind(tmp_path: Path) -> None:
    with run_two(tmp_path) as running:
        running.wait_for("all ready")
        children = [os.pidfd_open(running.find_child(words)) for words in ("broker serve", "chain dev")]
        running.process.kill()
        for child in children:
            ending = select.poll()
            ending.register(child, select.POLLIN)
            assert ending.poll(END_S_MAX * 1_000) == [(child, select.POLLIN)]
            os.close(child)

"""`proofcast peer` as two processes: start, subscribe, publish, status, and a restart that needs no bootstrap."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proofcast.cli import main

pytestmark = pytest.mark.slow


@contextmanager
def start_peer(state: Path, *options: str) -> Iterator[str]:
    """A running peer; gives its address and ends it as Ctrl-C does."""
    command = [sys.executable, "-m", "proofcast.cli", "peer", "start", "--state", str(state), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.send_signal(signal.SIGINT)


def run(capsys: pytest.CaptureFixture[str], command: str, state: Path, *arguments: str) -> str:
    assert main(["peer", command, "--state", str(state), *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_two_peers_talk_and_find_each_other_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with start_peer(one) as address:
        with start_peer(other, "--bootstrap", address):
            run(capsys, "subscribe", other, "--count", "0", "surf T/price R 1 9")
            run(capsys, "publish", one, "--payload", "big waves", "surf T/price V 5")
            assert "big waves" in run(capsys, "subscribe", other, "--count", "1", "surf T/price R 1 9")
            shown = json.loads(run(capsys, "status", one, "--json"))
            assert (shown["known"], len(shown["neighbours"])) == (1, 1)
            assert 0 < shown["neighbours"][0]["messages_left"] <= shown["limit"]["burst"]
        with start_peer(other):
            run(capsys, "publish", one, "--payload", "again", "surf T/price V 6")
            assert "again" in run(capsys, "subscribe", other, "--count", "1", "surf T/price R 6 9")

"""`proofcast peer` as two processes: start, subscribe, publish, status, and a restart that needs no bootstrap."""

import json
from pathlib import Path

import pytest

from proofcast.cli import main
from proofcast.testing.overlay.processes import start_peer

pytestmark = pytest.mark.slow


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

"""`proofcast overlay` and `proofcast peer`, as a user types them."""

import json
from pathlib import Path

import pytest

from proofcast.cli import main


def test_nothing_to_simulate_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overlay", "simulate"]) == 2
    assert "hint: give `--peers N`" in capsys.readouterr().err


def test_missing_scenario_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overlay", "simulate", "--scenario", str(tmp_path / "none.txt")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_scenario_that_comes_out_otherwise_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = tmp_path / "story.txt"
    story.write_text("peers 3\ncheck\n----\nexpected 9\n")
    assert main(["overlay", "simulate", "--scenario", str(story)]) == 1
    assert "the scenario says `expected 9`" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["status"], ["publish", "surf T"], ["subscribe", "surf T"]])
def test_no_peer_in_the_folder_is_said(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["peer", command[0], "--state", str(tmp_path), *command[1:]]) == 75
    assert "no peer runs in the folder" in capsys.readouterr().err


def test_wrong_predicate_is_refused_before_a_peer_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["peer", "subscribe", "--state", str(tmp_path), "surf"]) == 2
    assert "`surf` is no constraint" in capsys.readouterr().err


def test_simulation_prints_json_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "tree.svg"
    assert main(["overlay", "simulate", "--peers", "20", "--json", "--picture", str(picture)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["expected"], record["missing"], record["twice"]) == (20, 0, 0)
    assert picture.read_text().count("<circle") == 20

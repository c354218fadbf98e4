"""`proofcast doctor` tells present from absent, dead and old programs."""

import json
from pathlib import Path

import pytest

from proofcast.cli import main
from proofcast.cli.doctor import PROGRAMS, Program, check_data, check_program, find_program


@pytest.fixture
def only_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH, with nothing beside Python either."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    return tmp_path


def write_program(folder: Path, name: str, script: str) -> Program:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return next(program for program in PROGRAMS if program.name == name)


def test_absent_program_is_missing_and_says_how_to_get_it(only_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert find_program("anvil") is None
    main(["doctor"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if " anvil " in line]
    assert line.startswith("missing")
    assert "`make test` in a checkout installs it" in line


@pytest.mark.parametrize(
    ("script", "found"), [("exit 1", "does not start"), ("echo v18.20.1", "18.20.1 is older than 20")]
)
def test_useless_program_is_missing(only_path: Path, script: str, found: str) -> None:
    finding = check_program(write_program(only_path, "node", script))
    assert not finding.ok
    assert found in finding.found


@pytest.mark.parametrize("script", ["echo v20.1.0", "echo 'node version \"20.1.0\" of today' >&2"])
def test_program_is_found_wherever_it_prints_its_version(only_path: Path, script: str) -> None:
    finding = check_program(write_program(only_path, "node", script))
    assert (finding.ok, finding.found) == (True, "20.1.0")


def test_data_folder_is_found_by_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROOFCAST_DATA", str(tmp_path / "nowhere"))
    assert not check_data().ok
    monkeypatch.setenv("PROOFCAST_DATA", str(tmp_path))
    assert check_data().found == str(tmp_path)


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code = main(["doctor", "--json"])
    findings = json.loads(capsys.readouterr().out)
    assert {"python", "coincurve", "artefacts", "data", "anvil", "java"} <= {finding["name"] for finding in findings}
    assert (exit_code == 0) == all(finding["ok"] for finding in findings if finding["needed"])

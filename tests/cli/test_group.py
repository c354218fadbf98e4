"""`proofcast device`, `contact` and `group` as a user types them, against a server of their own."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofcast.cli import main
from proofcast.groups.io.launch import LaunchedServer, run_launched_server
from proofcast.groups.io.processes import Options
from proofcast.groups.proof import Lie


@dataclass(frozen=True, slots=True)
class Shell:
    """A user's shell; every call is (exit code, stdout, stderr)."""

    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> tuple[int, str, str]:
        self.capture.readouterr()
        return main(list(words)), *self.capture.readouterr()

    def read(self, *words: str) -> str:
        code, out, err = self(*words)
        assert code == 0, err
        return out

    def refuse(self, code: int, message: str, *words: str) -> None:
        found, out, err = self(*words)
        assert (found, out) == (code, ""), err
        sentence, hint = err.splitlines()[-2:]
        assert sentence.startswith("error: ")
        assert message in sentence
        assert hint.startswith("hint: ")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchedServer]:
    with run_launched_server(Options(str(tmp_path_factory.mktemp("server")), epoch_s=0.005)) as launched:
        yield launched


@pytest.fixture
def shell(
    server: LaunchedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setenv("PROOFCAST_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("PROOFCAST_PASSWORD", "secret")
    monkeypatch.setenv("PROOFCAST_GROUP_SERVER", server.url)
    return Shell(capsys)


@pytest.fixture
def pair(shell: Shell) -> Shell:
    """Alice and Bob, who know each other."""
    addresses = {name: json.loads(shell.read("device", "new", name, "--json"))["address"] for name in ("alice", "bob")}
    shell.read("contact", "add", "bob", addresses["bob"], "--device", "alice")
    shell.read("contact", "add", "alice", addresses["alice"], "--device", "bob")
    return shell


def test_refusals_without_a_device(shell: Shell, tmp_path: Path) -> None:
    shell.refuse(2, "there is no device at", "group", "read", "--device", "nobody")
    shell.refuse(2, "`../x` is no name for a device", "group", "read", "--device", "../x")
    shell.refuse(2, "`abc` is no server key", "device", "new", "x", "--server-key", "abc")
    shell.refuse(75, "does not answer", "device", "new", "x", "--server", "http://127.0.0.1:9")
    file = tmp_path / "proof"
    file.write_bytes(b"nonsense")
    shell.refuse(1, "proves nothing", "group", "verify-proof", str(file), "--server-key", "00" * 32)
    shell.refuse(2, "cannot be read", "group", "verify-proof", str(tmp_path / "none"), "--server-key", "00" * 32)


def test_server_with_another_key_is_refused(shell: Shell) -> None:
    shell.refuse(1, "has the key", "device", "new", "x", "--server-key", "00" * 32)


@pytest.mark.slow
def test_refusals_with_a_device(pair: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.refuse(2, "there is a device `alice` already", "device", "new", "alice")
    pair.refuse(2, "is not the address of a device", "contact", "add", "x", "PCG1AAAA", "--device", "alice")
    pair.refuse(2, "is not among this device's contacts", "group", "verify", "carol", "--device", "alice")
    pair.refuse(2, "`family` is the name of 0 groups", "group", "send", "family", "hi", "--device", "alice")
    pair.refuse(2, "nothing to prove", "group", "prove", "file", "--device", "alice")
    address = json.loads(pair.read("device", "show", "--device", "bob", "--json"))["address"]
    other = json.loads(pair.read("device", "show", "--device", "alice", "--json"))["address"]
    pair.refuse(1, "has the fingerprint", "contact", "add", "b", address, "--fingerprint", "1 2", "--device", "alice")
    pair.refuse(2, "`bob` is", "contact", "add", "bob", other, "--device", "alice")
    pair.refuse(2, "is this device", "device", "link", "me", other, "--device", "alice")
    monkeypatch.setenv("PROOFCAST_PASSWORD", "guessed")
    pair.refuse(2, "the password does not open", "group", "read", "--device", "alice")


@pytest.mark.slow
def test_talking_in_a_group(pair: Shell) -> None:
    pair.read("group", "create", "family", "--device", "alice")
    pair.read("group", "invite", "family", "bob", "--device", "alice")
    sent = json.loads(pair.read("group", "send", "family", "dinner at eight", "--device", "alice", "--json"))
    lines = [json.loads(line) for line in pair.read("group", "read", "--device", "bob", "--json").splitlines()]
    assert [(line["sender"], line["text"]) for line in lines] == [
        ("alice", "* +2, now 2 members"),
        ("alice", "dinner at eight"),
    ]
    assert lines[1]["sequence"] == sent["sequence"], "everybody sees it at the same place"
    assert pair.read("group", "read", "--device", "bob") == ""
    assert len(pair.read("group", "read", "--all", "--device", "bob").splitlines()) == 2
    assert "all is well" in pair.read("group", "status", "--device", "bob")
    pair.read("group", "remove", "family", "bob", "--device", "alice")
    pair.read("group", "send", "family", "he is gone", "--device", "alice")
    assert "he is gone" not in pair.read("group", "read", "--device", "bob")


@pytest.mark.slow
def test_two_devices_show_one_safety_number(pair: Shell) -> None:
    ours = json.loads(pair.read("group", "verify", "--device", "alice", "--json"))["bob"]
    theirs = json.loads(pair.read("group", "verify", "--device", "bob", "--json"))["alice"]
    assert ours == theirs


@pytest.mark.slow
def test_linked_device_is_a_member_everywhere(pair: Shell) -> None:
    address = json.loads(pair.read("device", "show", "--device", "bob", "--json"))["address"]
    pair.read("device", "link", "laptop", address, "--device", "alice")
    assert "laptop (linked)" in pair.read("device", "list", "--device", "alice")
    pair.read("group", "create", "mine", "--device", "alice")
    assert "now 2 members" in pair.read("group", "read", "--device", "bob")


@pytest.mark.slow
def test_address_as_a_qr_code(pair: Shell) -> None:
    assert "█" in pair.read("device", "show", "--qr", "--device", "alice")


@pytest.mark.slow
def test_restored_backup_starts_anew_and_accuses_nobody(pair: Shell, tmp_path: Path) -> None:
    pair.read("group", "create", "family", "--device", "alice")
    pair.read("group", "invite", "family", "bob", "--device", "alice")
    pair.read("group", "read", "--device", "bob")
    file = tmp_path / "groups" / "alice.device"
    backup = file.read_bytes()
    pair.read("group", "send", "family", "lost with the machine", "--device", "alice")
    pair.read("group", "read", "--device", "bob")
    for leftover in file.parent.glob("alice.device*"):
        leftover.unlink()
    file.write_bytes(backup)
    code, _, err = pair("group", "status", "--device", "alice")
    assert code == 0
    assert "restored backup" in err
    pair.read("group", "send", "family", "I am back", "--device", "alice")
    assert "I am back" in pair.read("group", "read", "--device", "bob")
    pair.read("group", "send", "family", "welcome", "--device", "bob")
    assert "welcome" in pair.read("group", "read", "--device", "alice")


@pytest.mark.slow
def test_demo_convicts_the_server(shell: Shell) -> None:
    code, out, err = shell("group", "demo", "--json")
    assert code == 0
    assert json.loads(out)["lie"] == Lie.MISSING.name.lower()
    assert "YOUR SERVER LIED, here is the proof" in err

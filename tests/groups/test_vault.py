"""The device's file: who cannot open it, what it does not show, what survives."""

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from proofcast.errors import InvalidInput, InvalidRequest
from proofcast.groups.io import vault as vault_module
from proofcast.groups.io.vault import JOURNAL_ENTRIES_MAX, create_vault, open_vault

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: deriving a key from a password is slow on purpose."""
    path = tmp_path_factory.mktemp("vault") / "device"
    with create_vault(path, PASSWORD) as vault:
        vault.write({"session/bob": b"ratchet secret", "counter": b"7"})
    return path


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "device"))


def test_wrong_password_is_refused(path: Path) -> None:
    with pytest.raises(InvalidRequest, match="does not open"):
        open_vault(path, "wrong")


def test_existing_device_is_not_overwritten(path: Path) -> None:
    with pytest.raises(InvalidRequest, match="already"):
        create_vault(path, PASSWORD)


def test_absent_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no device at"):
        open_vault(tmp_path / "none", PASSWORD)


def test_other_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("not a database, but long enough to look like a file with a header" * 20)
    with pytest.raises(InvalidInput, match="holds no device"):
        open_vault(tmp_path / "note", PASSWORD)


def test_changed_or_swapped_row_is_refused(path: Path) -> None:
    database = sqlite3.connect(path)
    (one, _), (two, sealed) = database.execute("select id, sealed from rows").fetchall()
    database.execute("update rows set sealed = ? where id = ?", [sealed, one])
    database.commit()
    database.close()
    with open_vault(path, PASSWORD) as vault, pytest.raises(InvalidInput, match="changed by someone"):
        list(vault.read_all())
    assert one != two


def test_changed_or_reordered_journal_is_refused(path: Path) -> None:
    crash_after(path, {"counter": b"8"}, {"counter": b"9"})
    database = sqlite3.connect(path)
    entries = [sealed for (sealed,) in database.execute("select sealed from journal order by number")]
    assert len(entries) == 3, "the empty one, and two"
    for number, sealed in enumerate(reversed(entries)):
        database.execute("update journal set sealed = ? where number = ?", [sealed, 2 + number])
    database.commit()
    database.close()
    with pytest.raises(InvalidInput, match="changed by someone"), open_vault(path, PASSWORD) as vault:
        list(vault.read_all())


def test_file_shows_no_name_and_no_value(original: Path) -> None:
    data = b"".join(file.read_bytes() for file in original.parent.iterdir())
    assert original.stat().st_mode & 0o077 == 0
    assert b"ratchet" not in data
    assert b"session/bob" not in data
    assert b"bob" not in data


def test_what_is_written_comes_back(path: Path) -> None:
    with open_vault(path, PASSWORD) as vault:
        vault.write({"counter": b"8", "session/bob": None})
        assert vault.find("session/bob") is None
    with open_vault(path, PASSWORD) as vault:
        assert dict(vault.read_all()) == {"counter": b"8"}


def crash_after(path: Path, *writes: Mapping[str, bytes | None]) -> None:
    """Have another process write, and killed before it can close the file."""
    child = os.fork()
    if child == 0:
        vault = open_vault(path, PASSWORD)
        for changes in writes:
            vault.write(changes)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_write_survives_a_killed_process(path: Path) -> None:
    crash_after(path, {"counter": b"9", "session/bob": None}, {"session/carol": b"ratchet"})
    for _ in range(2):
        with open_vault(path, PASSWORD) as vault:
            assert dict(vault.read_all()) == {"counter": b"9", "session/carol": b"ratchet"}
            assert (vault.find("counter"), vault.find("session/bob")) == (b"9", None)


@pytest.mark.parametrize("seed", range(3))
def test_journal_and_rows_are_one_state(path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it is folded, and whenever the file is opened anew."""
    monkeypatch.setattr(vault_module, "JOURNAL_BYTES_MAX", 2_000)
    dice, expected = random.Random(seed), {"session/bob": b"ratchet secret", "counter": b"7"}
    for _ in range(3):
        with open_vault(path, PASSWORD) as vault:
            for _ in range(30):
                names = dice.sample(["counter", "session/bob", *map(str, range(20))], dice.randint(1, 5))
                changes = {name: dice.choice([None, dice.randbytes(dice.randint(0, 300))]) for name in names}
                vault.write(changes)
                expected = {name: value for name, value in (expected | changes).items() if value is not None}
                assert dict(vault.read_all()) == expected
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("select count(*) from journal").fetchone() == (1,), "wiped when it was closed"


def test_journal_keeps_no_long_past(path: Path) -> None:
    """Its entries hold earlier states of ratchets."""
    with open_vault(path, PASSWORD) as vault:
        for number in range(2 * JOURNAL_ENTRIES_MAX):
            vault.write({"session/bob": b"%d" % number})
        (kept,) = vault.database.execute("select count(*) from journal").fetchone()
        assert kept <= JOURNAL_ENTRIES_MAX + 1
        assert vault.find("session/bob") == b"%d" % number

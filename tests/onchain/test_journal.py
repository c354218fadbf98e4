"""The journal by itself: files it cannot use, nonces it hands out, what it keeps."""

import sqlite3
from pathlib import Path

import pytest

from proofcast.errors import InvalidRequest
from proofcast.onchain.io.journal import Attempt, Journal, Promise
from proofcast.onchain.request import Request

CHAIN, SENDER = b"chain", b"sender"
REQUEST = Request(b"\x01" * 20, b"data", 2**200)


def sign(nonce: int) -> Attempt:
    return Attempt(b"hash %d" % nonce, b"raw", 21_000, 2, 1)


def promise(journal: Journal, key: str, first: int = 0) -> Promise:
    return journal.open_promise(key, b"intent", REQUEST, first, sign)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path, CHAIN, SENDER)


def test_file_that_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "sender.sqlite").write_bytes(b"x" * 4096)
    with pytest.raises(InvalidRequest, match="cannot be used") as raised:
        Journal(tmp_path, CHAIN, SENDER)
    assert "PROOFCAST_STATE_DIR" in raised.value.hint


def test_journal_of_another_version(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "sender.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(InvalidRequest, match="version 99, not 1"):
        Journal(tmp_path, CHAIN, SENDER)


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match="cannot be used"):
        Journal(tmp_path / "file", CHAIN, SENDER)


def test_failed_signature_leaves_nothing(journal: Journal) -> None:
    def fail(nonce: int) -> Attempt:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        journal.open_promise("a", b"intent", REQUEST, 0, fail)
    assert journal.find("a") is None
    assert promise(journal, "b").nonce == 0


def test_nonces_go_up_and_gaps_are_filled(journal: Journal) -> None:
    made = [promise(journal, key) for key in "abc"]
    assert [one.nonce for one in made] == [0, 1, 2]
    journal.forget(made[1])
    assert promise(journal, "d").nonce == 1
    assert promise(journal, "e", first=7).nonce == 7


def test_keys_and_chains_do_not_share_nonces(journal: Journal, tmp_path: Path) -> None:
    promise(journal, "a")
    for chain, sender in ((b"other", SENDER), (CHAIN, b"other")):
        other = Journal(tmp_path, chain, sender)
        assert other.find("a") is None
        assert promise(other, "a").nonce == 0


def test_promise_is_found_as_it_was_made(journal: Journal, tmp_path: Path) -> None:
    made = promise(journal, "a")
    journal.add_attempt(made, sign(100))
    again = Journal(tmp_path, CHAIN, SENDER).find("a")
    assert again == made.with_attempt(sign(100))


def test_unsettled_are_those_never_seen_or_reorganised_away(journal: Journal) -> None:
    seen, lost, unseen = (promise(journal, key) for key in ("seen", "lost", "unseen"))
    journal.keep_receipt(seen, "{}")
    journal.mark_lost(lost)
    assert [one.key for one in journal.list_unsettled(1)] == ["unseen"]
    assert [one.key for one in journal.list_unsettled(0)] == ["seen", "unseen"]
    assert unseen.nonce == 2

"""A server's key names its successor: who is not believed, what ends, who follows."""

import asyncio
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from proofcast.errors import InvalidInput, InvalidRequest
from proofcast.groups.io.device import create_device, follow
from proofcast.groups.io.processes import Options
from proofcast.groups.io.retirement import retire
from proofcast.groups.io.sequencer import run_server
from proofcast.groups.io.serverkey import load_server_key
from proofcast.groups.notebook import CONTACT
from proofcast.groups.succession import Succession, sign_succession, verify_succession

OLD, NEW = SigningKey(b"o" * 32), SigningKey(b"n" * 32)
OLD_KEY, NEW_KEY = bytes(OLD.verify_key), bytes(NEW.verify_key)
STATEMENT = sign_succession(OLD, NEW_KEY, 7)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (STATEMENT[:-1], "no statement"),
        (b"x" + STATEMENT[1:], "no statement"),
        (sign_succession(NEW, OLD_KEY, 7), "is by the server"),
        (STATEMENT[:40] + b"x" + STATEMENT[41:], "not signed"),
    ],
    ids=["short", "magic", "other server", "other successor"],
)
def test_statement_that_the_old_key_did_not_make_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        verify_succession(data, OLD_KEY)


def test_folder_without_a_server_cannot_be_retired(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="holds no server"):
        retire(tmp_path, NEW_KEY)


def test_retired_server_names_one_successor_and_serves_no_more(tmp_path: Path) -> None:
    key = load_server_key(tmp_path)
    statement = retire(tmp_path, NEW_KEY)
    assert verify_succession(statement, key.public) == Succession(key.public, NEW_KEY, 0)
    assert retire(tmp_path, NEW_KEY) == statement
    with pytest.raises(InvalidRequest, match="as its successor"):
        retire(tmp_path, OLD_KEY)
    with pytest.raises(InvalidRequest, match="this server ended with epoch `0`"):
        asyncio.run(run_server(Options(str(tmp_path)), lambda running: None))


def test_device_that_follows_keeps_its_address_and_contacts(tmp_path: Path) -> None:
    old = create_device(tmp_path / "old", "password", "http://old", OLD_KEY)
    with old.vault:
        old.vault.write({CONTACT + "bob": b"b" * 32})
        with pytest.raises(InvalidInput, match="is by the server"):
            follow(tmp_path / "new", "password", "http://new", old, sign_succession(NEW, OLD_KEY, 7))
        new = follow(tmp_path / "new", "password", "http://new", old, STATEMENT)
        with new.vault:
            assert (new.device_id, new.notebook.contacts) == (old.device_id, {"bob": b"b" * 32})
            assert (new.server_url, new.client.server_key) == ("http://new", NEW_KEY)

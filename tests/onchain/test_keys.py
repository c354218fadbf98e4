"""Keys: what is refused, in words that never hold the key."""

import json
from pathlib import Path

import pytest
from eth_account import Account

from proofcast.errors import InvalidRequest, Reason
from proofcast.onchain.io.keys import KEY_VARIABLE, load_account

SECRET = "5e" * 32
PASSWORD = "correct horse"


def read_password() -> str:
    return PASSWORD


def refuse_to_ask() -> str:
    raise AssertionError("asked for a password that is not needed")


@pytest.fixture(scope="module")
def keystore(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keystore with cheap key derivation; a real one takes a second on purpose."""
    file = tmp_path_factory.mktemp("keys") / "key.json"
    file.write_text(json.dumps(Account.encrypt(SECRET, PASSWORD, kdf="pbkdf2", iterations=1000)))
    return file


def get_refusal(keystore: Path | None, environment: dict[str, str], password: str = PASSWORD) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as raised:
        load_account(keystore, lambda: password, environment)
    assert raised.value.reason is Reason.BAD_KEY
    assert raised.value.hint
    said = str(raised.value) + raised.value.hint + repr(raised.value.__context__ and raised.value.__suppress_context__)
    assert SECRET not in said
    assert password not in said
    return raised.value


def test_no_key() -> None:
    assert "no key to sign with" in str(get_refusal(None, {}))


@pytest.mark.parametrize("key", ["x", "0x" + "00" * 32, "ff" * 32, SECRET[:-2], SECRET + "00", "gg" + SECRET[2:]])
def test_environment_without_a_key(key: str) -> None:
    assert str(get_refusal(None, {KEY_VARIABLE: key})) == "`PROOFCAST_PRIVATE_KEY` holds no private key"


def test_missing_file(tmp_path: Path) -> None:
    assert "cannot be read (`No such file or directory`)" in str(get_refusal(tmp_path / "none", {}))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", SECRET, '{"crypto": 7}', '{"crypto": {}, "version": 9}'])
def test_file_that_is_no_keystore(tmp_path: Path, text: str) -> None:
    file = tmp_path / "key.json"
    file.write_text(text)
    assert "is no Ethereum keystore" in str(get_refusal(file, {}))


def test_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_bytes(b"\xff\xfe\x00")
    assert "is no Ethereum keystore" in str(get_refusal(file, {}))


def test_wrong_password(keystore: Path) -> None:
    assert "the password does not open the key file" in str(get_refusal(keystore, {}, "wrong horse"))


@pytest.mark.parametrize("prefix", ["", "0x"])
def test_key_in_place_of_a_file_is_not_repeated(prefix: str) -> None:
    assert "a private key was given where" in str(get_refusal(Path(prefix + SECRET), {}))


def test_keystore_is_opened(keystore: Path) -> None:
    assert load_account(keystore, read_password, {}).address == Account.from_key(SECRET).address


def test_keystore_goes_before_the_environment(keystore: Path) -> None:
    environment = {KEY_VARIABLE: "11" * 32}
    assert load_account(keystore, read_password, environment).address == Account.from_key(SECRET).address


@pytest.mark.parametrize("key", [SECRET, "0x" + SECRET, f" {SECRET}\n"])
def test_key_of_the_environment(key: str) -> None:
    assert load_account(None, refuse_to_ask, {KEY_VARIABLE: key}).address == Account.from_key(SECRET).address

"""Signing keys: from an encrypted keystore file or from the environment, never from the command line.

No message of this module contains a key, a password or anything read from a key file. The library is loaded with the
first key: it takes half a second, which commands that sign nothing need not wait.
"""

import importlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from proofcast.errors import InvalidRequest, Reason

if TYPE_CHECKING:
    from eth_account import Account
    from eth_account.signers.local import LocalAccount

KEY_VARIABLE = "PROOFCAST_PRIVATE_KEY"
KEYSTORE_VARIABLE = "PROOFCAST_KEYSTORE"
KEY_FORM = re.compile(r"(0x)?[0-9a-fA-F]{64}")


def load_account(
    keystore: Path | None, read_password: Callable[[], str], environment: Mapping[str, str]
) -> "LocalAccount":
    """The account to sign with: the keystore if one is named, else the key in the environment."""
    if keystore is not None:
        return open_keystore(keystore, read_password)
    if environment.get(KEY_VARIABLE):
        return parse_key(environment[KEY_VARIABLE])
    raise InvalidRequest(
        Reason.BAD_KEY,
        "there is no key to sign with",
        hint=f"name a keystore file with `--keystore`, or set `{KEY_VARIABLE}`",
    )


def load_library() -> "type[Account]":
    accounts: type[Account] = importlib.import_module("eth_account").Account
    return accounts


def parse_key(text: str) -> "LocalAccount":
    try:
        key = bytes.fromhex(text.strip().removeprefix("0x"))
        account: LocalAccount = load_library().from_key(key)
    except Exception:  # whatever the libraries raise may quote the key
        raise InvalidRequest(
            Reason.BAD_KEY,
            f"`{KEY_VARIABLE}` holds no private key",
            hint="it must be 32 bytes as 64 hexadecimal digits, below the order of secp256k1 and not zero",
        ) from None
    return account


def open_keystore(file: Path, read_password: Callable[[], str]) -> "LocalAccount":
    if KEY_FORM.fullmatch(str(file)):
        raise InvalidRequest(
            Reason.BAD_KEY,
            "a private key was given where the name of a key file belongs",
            hint=f"others can see your command line: use a new key, in a keystore file or in `{KEY_VARIABLE}`",
        )
    try:
        keystore = json.loads(file.read_text())
    except OSError as error:
        raise InvalidRequest(
            Reason.BAD_KEY,
            f"the key file `{file}` cannot be read (`{error.strerror}`)",
            hint="check its name and permissions",
        ) from None
    except ValueError:
        raise refuse_keystore(file) from None
    if not isinstance(keystore, dict) or "crypto" not in {name.lower() for name in keystore}:
        raise refuse_keystore(file)
    accounts = load_library()
    try:
        account: LocalAccount = accounts.from_key(accounts.decrypt(keystore, read_password()))
    except ValueError:
        raise InvalidRequest(
            Reason.BAD_KEY,
            f"the password does not open the key file `{file}`",
            hint="check the password; it is the one given when the file was made",
        ) from None
    except (KeyError, TypeError, NotImplementedError):
        raise refuse_keystore(file) from None
    return account


def refuse_keystore(file: Path) -> InvalidRequest:
    return InvalidRequest(
        Reason.BAD_KEY,
        f"the file `{file}` is no Ethereum keystore",
        hint="it must be a version 3 keystore in JSON, as wallets and `geth account new` make them",
    )

"""The server's key and secret: made at its first start, kept in its folder, readable by its user alone."""

import os
from dataclasses import dataclass
from pathlib import Path

from nacl.signing import SigningKey

from proofcast.errors import InvalidRequest, Reason
from proofcast.groups.io.log import replace_file

NAME = "server.key"
SEED_BYTES = 32


@dataclass(frozen=True, slots=True)
class ServerKey:
    signing: SigningKey
    secret: bytes
    """For salts and tokens; nobody else ever sees it."""

    @property
    def public(self) -> bytes:
        return bytes(self.signing.verify_key)


def load_server_key(folder: Path) -> ServerKey:
    path = folder / NAME
    if not path.exists():
        create_server_key(folder)
    data = path.read_bytes()
    if len(data) != 2 * SEED_BYTES:
        message = f"`{path}` has `{len(data)}` bytes where `{2 * SEED_BYTES}` are due"
        raise InvalidRequest(Reason.BAD_KEY, message, hint="restore it from a backup; another key is another server")
    return ServerKey(SigningKey(data[:SEED_BYTES]), data[SEED_BYTES:])


def create_server_key(folder: Path) -> None:
    """A folder that has a log already had a key once, and a new one would deny what the old one signed."""
    if any(folder.glob("*/*.segment")):
        message = f"`{folder / NAME}` is missing and the folder holds a log"
        raise InvalidRequest(Reason.BAD_KEY, message, hint="restore the key from a backup")
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / NAME, os.urandom(2 * SEED_BYTES))

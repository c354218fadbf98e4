"""A witness at work: its key and its last checkpoint in a folder, a server that it looks at again and again."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from nacl.signing import SigningKey

from proofcast.errors import InvalidInput, InvalidRequest, Misbehaviour, Reason
from proofcast.groups.epoch import get_shard
from proofcast.groups.io.connection import ANSWER_S_MAX, ServerFacts, call, get_server
from proofcast.groups.io.log import lock_folder, replace_file
from proofcast.groups.witness import Witness, encode_cosignatures, parse_signed

KEY, LAST, PROOF = "witness.key", "last", "fork.proof"
SEED_BYTES = 32


@dataclass(slots=True)
class Watch:
    """Made by `open_watch`."""

    folder: Path
    url: str
    witness: Witness

    @property
    def key(self) -> bytes:
        return bytes(self.witness.key.verify_key)

    async def look(self) -> int:
        """Cosign what is new; how many. Raises `Misbehaviour`, with the proof, where there are two chains."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_S_MAX)) as session:
            facts = await get_server(session, self.url)
            if facts.server_key != self.witness.server_key:
                message = f"the server at `{self.url}` has the key `{facts.server_key.hex()}`"
                raise InvalidInput(Reason.DISAGREES, message, hint="it is another server than the one to watch")
            data = await self.fetch(session, facts)
            body = self.cosign(data)
            if body:
                shard = facts.shards[get_shard(self.key, len(facts.shards))]
                await call(session, "POST", f"{shard}/v1/cosignatures", self.key + body)
            return len(parse_signed(data))

    async def fetch(self, session: aiohttp.ClientSession, facts: ServerFacts) -> bytes:
        """Checkpoints after the last one; a witness that has none begins with the oldest there is."""
        last, url = self.witness.last, f"{facts.shards[0]}/v1/checkpoints?after="
        try:
            return await call(session, "GET", url + str(last[0].epoch if last else 0))
        except InvalidRequest as error:
            if last is not None or not isinstance(error.need, int):
                raise
            return await call(session, "GET", url + str(error.need - 1))

    def cosign(self, data: bytes) -> bytes:
        """Durably decided before it leaves: of two chains this witness never signs both."""
        signed = parse_signed(data)
        try:
            found = [(one[0].epoch, self.witness.cosign(one)) for one in signed]
        except Misbehaviour as error:
            replace_file(self.folder / PROOF, error.evidence)
            raise
        if found:
            checkpoint, signature = signed[-1]
            replace_file(self.folder / LAST, checkpoint.encode() + signature)
        return encode_cosignatures(found)


@contextmanager
def open_watch(folder: Path, url: str, server_key: bytes) -> Iterator[Watch]:
    """Its folder belongs to one witness of one server, and to one process."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = lock_folder(folder)
    try:
        if not (folder / KEY).exists():
            replace_file(folder / KEY, os.urandom(SEED_BYTES))
        last = parse_signed((folder / LAST).read_bytes()) if (folder / LAST).exists() else [None]
        yield Watch(folder, url, Witness(SigningKey((folder / KEY).read_bytes()), server_key, last[0]))
    finally:
        os.close(lock)

"""A device's connection to its server: login, calls, packets. No decisions of the protocol are made here."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from struct import Struct
from typing import Any

import aiohttp
from nacl.signing import SigningKey

from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Reason, Unavailable
from proofcast.groups.epoch import get_shard
from proofcast.groups.io.reception import DeviceFacts
from proofcast.groups.link import encode_list, parse_list
from proofcast.groups.login import sign_challenge

ANSWER_S_MAX = 30
"""An epoch takes a fraction of a second; a server that is silent for this long is not there."""
JSON_BYTES_MAX = 8_192
"""The addresses of 64 shards."""
WITNESSED = Struct(">32s64s")
"""Witness and signature."""
STATUS_CLASSES: dict[int, type[ProofcastError]] = {422: InvalidInput, 503: Unavailable}


class Connection:
    """Made by `connect`."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self.session = session
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"}

    async def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        return await call(self.session, method, self.url + path, body, self.headers)

    async def get_facts(self) -> DeviceFacts:
        fields = parse_json(await self.call("GET", "/v1/device"))
        names = ("counter", "attested", "keys", "inbox_bytes", "deleted")
        try:
            return DeviceFacts(bool(fields["registered"]), *(int(fields[name]) for name in names))
        except (KeyError, TypeError, ValueError):
            raise refuse_answer(self.url) from None

    async def send(self, series: list[bytes]) -> int:
        """Have series ordered; returns when they are attested."""
        return int.from_bytes(await self.call("POST", "/v1/series", encode_list(series)), "big")

    async def read(self, after: int) -> list[bytes]:
        """The next packets that end beyond `after`; as many as fit one answer."""
        answer = await self.call("GET", f"/v1/inbox?after={after}")
        return parse_list(answer) if answer else []

    async def delete(self, before: int) -> None:
        await self.call("DELETE", f"/v1/inbox?before={before}")

    async def publish(self, bundles: bytes) -> None:
        await self.call("POST", "/v1/keys", bundles)

    async def claim(self, device: bytes) -> bytes:
        return await self.call("POST", "/v1/keys/claim", device)

    async def demand(self) -> None:
        await self.call("POST", "/v1/demand")

    async def get_cosignatures(self, epoch: int) -> dict[bytes, bytes]:
        """By witness, unchecked."""
        answer = await self.call("GET", f"/v1/cosignatures?epoch={epoch}")
        if len(answer) % WITNESSED.size:
            raise refuse_answer(self.url)
        return dict(WITNESSED.iter_unpack(answer))


async def call(
    session: aiohttp.ClientSession, method: str, url: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> bytes:
    try:
        async with session.request(method, url, data=body or None, headers=headers) as response:
            answer = await response.read()
            if response.status != 200:
                raise parse_refusal(response.status, answer)
            return answer
    except (aiohttp.ClientError, TimeoutError) as error:
        message = f"the server at `{url.split('/v1/')[0]}` does not answer: {error or 'time-out'}"
        raise Unavailable(
            Reason.NO_ANSWER, message, hint="is it running? what you sent is kept and sent again"
        ) from None


def parse_json(data: bytes) -> dict[str, Any]:
    """A small object; a long text could nest deep enough to exhaust the stack."""
    try:
        fields = json.loads(data) if len(data) <= JSON_BYTES_MAX else None
    except ValueError:
        fields = None
    return fields if isinstance(fields, dict) else {}


def refuse_answer(url: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, f"`{url}` answers nonsense", hint="is this the address of a group server?")


def parse_refusal(status: int, answer: bytes) -> ProofcastError:
    """The server's refusal as the error it was."""
    try:
        fields = parse_json(answer)
        reason, message, hint, need = (fields[name] for name in ("reason", "message", "hint", "need"))
        return STATUS_CLASSES.get(status, InvalidRequest)(Reason(reason), str(message), hint=str(hint), need=need)
    except (ValueError, KeyError, TypeError):
        message = f"the server answers with status `{status}`"
        return Unavailable(Reason.NO_ANSWER, message, hint="is this the address of a group server?")


@dataclass(frozen=True, slots=True)
class ServerFacts:
    server_key: bytes
    shards: tuple[str, ...]


async def get_server(session: aiohttp.ClientSession, url: str) -> ServerFacts:
    fields = parse_json(await call(session, "GET", url.rstrip("/") + "/v1/server"))
    try:
        return ServerFacts(bytes.fromhex(fields["server_key"]), tuple(fields["shards"]))
    except (KeyError, TypeError, ValueError):
        raise refuse_answer(url) from None


@asynccontextmanager
async def connect(url: str, server_key: bytes, identity: SigningKey) -> AsyncIterator[Connection]:
    """Log in at the shard that the device belongs to; a server with another key than the one trusted is refused."""
    timeout = aiohttp.ClientTimeout(total=ANSWER_S_MAX)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        facts = await get_server(session, url)
        if facts.server_key != server_key:
            message = f"the server at `{url}` has the key `{facts.server_key.hex()}`, not `{server_key.hex()}`"
            raise InvalidInput(Reason.DISAGREES, message, hint="it is another server, or somebody pretends to be it")
        device = bytes(identity.verify_key)
        shard = facts.shards[get_shard(device, len(facts.shards))]
        yield Connection(session, shard, await login(session, shard, server_key, identity))


async def login(session: aiohttp.ClientSession, url: str, server_key: bytes, identity: SigningKey) -> str:
    device = bytes(identity.verify_key)
    challenge = await call(session, "POST", url + "/v1/challenge", device)
    signature = sign_challenge(identity, server_key, challenge)
    return (await call(session, "POST", url + "/v1/login", device + challenge + signature)).decode()

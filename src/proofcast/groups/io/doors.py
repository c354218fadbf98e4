"""The doors of a shard: HTTP for every call; server-sent events and a WebSocket to receive as it happens.

    GET    /v1/server                  the server's key and the addresses of its shards
    POST   /v1/challenge               device id -> challenge
    POST   /v1/login                   device id | challenge | signature -> token
    GET    /v1/device                  what the server knows of the caller: counter, keys left, inbox
    POST   /v1/series                  list of series -> counter of the last one, when all are attested
    GET    /v1/inbox?after=SEQUENCE    list of packets
    DELETE /v1/inbox?before=SEQUENCE
    GET    /v1/events?after=SEQUENCE   packets as server-sent events, base64
    GET    /v1/stream?after=SEQUENCE   packets and calls on a WebSocket, binary (see `stream.py`)
    POST   /v1/keys                    key bundles
    POST   /v1/keys/claim              device id -> its key bundle
    GET    /v1/checkpoints?after=EPOCH signed checkpoints, without gaps
    POST   /v1/cosignatures            witness 32 | any number of (epoch u64 | signature 64)
    GET    /v1/cosignatures?epoch=EPOCH   any number of (witness 32 | signature 64)
    POST   /v1/demand                  the next epoch attests the caller, even if nothing came

A list is any number of (length u32 | item). All but the first three, and those for witnesses, want
`Authorization: Bearer TOKEN` and act for the device that logged in, never for another.
"""

import asyncio
import base64
import binascii
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl

from aiohttp import web

from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Reason, Unavailable
from proofcast.groups.frame import EntryKind
from proofcast.groups.io.calls import JSON, Answer, Call, CallProtocol
from proofcast.groups.io.reception import Reception
from proofcast.groups.io.stream import push_events, serve_stream
from proofcast.groups.link import encode_list
from proofcast.groups.login import (
    CHALLENGE_BYTES,
    DEVICE_BYTES,
    compute_challenge,
    get_expiry,
    verify_login,
    verify_token,
)
from proofcast.groups.server import SEQUENCE
from proofcast.groups.wire import WireReader, refuse

ANSWER_BYTES_MAX = 4 << 20
"""Packets in one answer; whoever has more asks again from where it ended."""
CALLERS_MAX = 100_000
"""Tokens known again; with more, all are verified anew."""
RETRY_S = 1
BACKLOG = 1_024
"""Connections that wait to be accepted: as many devices may come back at once after a restart."""


@asynccontextmanager
async def open_doors(reception: Reception, host: str, port: int) -> AsyncIterator[int]:
    """Serve while the context lasts; at which port."""
    runner = web.AppRunner(make_streams(reception), access_log=None, handle_signals=False)
    await runner.setup()
    make_stream = cast(Callable[[], asyncio.Protocol], runner.server)
    doors, loop = Doors(reception), asyncio.get_running_loop()
    server = await loop.create_server(lambda: CallProtocol(doors.answer, make_stream), host, port, backlog=BACKLOG)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await runner.cleanup()


def make_streams(reception: Reception) -> web.Application:
    """The two doors whose answer never ends."""

    async def stream_events(request: web.Request) -> web.StreamResponse:
        after = request.headers.get("Last-Event-ID") or request.query.get("after", "0")
        return await push_events(reception, request, get_device(request), parse_number(after, "after"))

    async def stream(request: web.Request) -> web.StreamResponse:
        after = parse_number(request.query.get("after", "0"), "after")
        return await serve_stream(reception, request, get_device(request), after)

    def get_device(request: web.Request) -> bytes:
        return Callers(reception.key.secret).verify(request.headers.get("Authorization", ""), time.time())

    application = web.Application(middlewares=[refuse_stream])
    application.add_routes([web.get("/v1/events", stream_events), web.get("/v1/stream", stream)])
    return application


@web.middleware
async def refuse_stream(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """A connection that was handed over for a stream serves nothing else: refused, it ends."""
    try:
        return await handler(request)
    except ProofcastError as error:
        answer = refuse_call(error)
        response = web.Response(body=answer.body, status=answer.status, content_type=JSON)
        response.force_close()
        return response


def refuse_call(error: ProofcastError) -> Answer:
    body = {"reason": error.reason, "message": str(error), "hint": error.hint, "need": error.need}
    headers = f"Retry-After: {RETRY_S}\r\n" if isinstance(error, Unavailable) else ""
    return Answer(json.dumps(body).encode(), get_status(error), JSON, headers)


def get_status(error: ProofcastError) -> HTTPStatus:
    if isinstance(error, InvalidInput):
        return HTTPStatus.UNPROCESSABLE_ENTITY
    if isinstance(error, Unavailable):
        return HTTPStatus.SERVICE_UNAVAILABLE
    return STATUSES.get(error.reason, HTTPStatus.BAD_REQUEST)


STATUSES = {
    Reason.BAD_KEY: HTTPStatus.UNAUTHORIZED,
    Reason.NOT_ALLOWED: HTTPStatus.FORBIDDEN,
    Reason.STALE_SEQUENCE: HTTPStatus.CONFLICT,
}


class Callers:
    """Who calls; a token is verified when it is first seen, and until it expires known again."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.known: dict[str, tuple[bytes, float]] = {}
        """Device and expiry of a token, by the header that carries it."""

    def verify(self, authorization: str, now: float) -> bytes:
        """The device; refused without a token of ours."""
        device, expiry = self.known.get(authorization, (b"", 0.0))
        return device if now < expiry else self.verify_token(authorization, now)

    def verify_token(self, authorization: str, now: float) -> bytes:
        kind, _, token = authorization.partition(" ")
        try:
            sealed = base64.urlsafe_b64decode(token) if kind == "Bearer" else b""
        except (binascii.Error, ValueError):
            sealed = b""
        device = verify_token(self.secret, sealed, now)
        if len(self.known) >= CALLERS_MAX:
            self.known.clear()
        self.known[authorization] = device, get_expiry(sealed)
        return device


class Doors:
    def __init__(self, reception: Reception) -> None:
        self.reception = reception
        self.callers = Callers(reception.key.secret)

    async def answer(self, call: Call) -> Answer:
        path, _, query = call.target.decode("latin-1").partition("?")
        door = DOORS.get((call.method, path))
        try:
            if door is None:
                message = f"there is no door `{call.method} {path}`"
                raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="is this the address of a group server?")
            return await door(self, call, query)
        except ProofcastError as error:
            return refuse_call(error)

    def get_device(self, call: Call) -> bytes:
        return self.callers.verify(call.authorization, time.time())

    async def show_server(self, call: Call, query: str) -> Answer:
        facts = {"server_key": self.reception.key.public.hex(), "shards": self.reception.urls}
        return Answer(json.dumps(facts).encode(), content_type=JSON)

    async def challenge(self, call: Call, query: str) -> Answer:
        device = parse_device_id(call)
        return Answer(compute_challenge(self.reception.key.secret, device, time.time()))

    async def login(self, call: Call, query: str) -> Answer:
        reader = WireReader(call.body, "the login")
        device, challenge = reader.take(DEVICE_BYTES), reader.take(CHALLENGE_BYTES)
        signature = reader.take(64)
        key = self.reception.key
        token = verify_login(key.secret, key.public, device, challenge, signature, time.time())
        return Answer(base64.urlsafe_b64encode(token))

    async def show_device(self, call: Call, query: str) -> Answer:
        facts = asdict(self.reception.describe(self.get_device(call)))
        return Answer(json.dumps(facts).encode(), content_type=JSON)

    async def send(self, call: Call, query: str) -> Answer:
        return Answer(SEQUENCE.pack(await self.reception.send_series(self.get_device(call), call.body)))

    async def read(self, call: Call, query: str) -> Answer:
        device = self.get_device(call)
        packets, size = [], 0
        for packet in self.reception.read(device, parse_sequence(query, "after")):
            packets.append(packet.data)
            size += len(packet.data)
            if size > ANSWER_BYTES_MAX:
                break
        return Answer(encode_list(packets))

    async def delete(self, call: Call, query: str) -> Answer:
        before = SEQUENCE.pack(parse_sequence(query, "before"))
        await self.reception.ask(EntryKind.DELETE, self.get_device(call), before)
        return Answer()

    async def publish(self, call: Call, query: str) -> Answer:
        await self.reception.ask(EntryKind.KEYS, self.get_device(call), call.body)
        return Answer()

    async def claim(self, call: Call, query: str) -> Answer:
        device, wanted = self.get_device(call), parse_device_id(call)
        bundle = await self.reception.ask(EntryKind.CLAIM, device, wanted)
        if bundle is None:
            message = f"the device `{wanted.hex()}` has no keys left"
            raise Unavailable(Reason.NOT_YET, message, hint="ask its owner to connect it")
        return Answer(bundle)

    async def demand(self, call: Call, query: str) -> Answer:
        await self.reception.ask(EntryKind.DEMAND, self.get_device(call), b"")
        return Answer()

    async def show_checkpoints(self, call: Call, query: str) -> Answer:
        return Answer(self.reception.notice.read(parse_sequence(query, "after")))

    async def cosign(self, call: Call, query: str) -> Answer:
        """The signatures inside say who it is."""
        reader = WireReader(call.body, "the cosignatures")
        witness = reader.take(DEVICE_BYTES)
        await self.reception.ask(EntryKind.COSIGN, witness, reader.data[DEVICE_BYTES:])
        return Answer()

    async def show_cosignatures(self, call: Call, query: str) -> Answer:
        return Answer(self.reception.notice.get_cosignatures(parse_sequence(query, "epoch")))


DOORS: dict[tuple[str, str], Callable[[Doors, Call, str], Awaitable[Answer]]] = {
    ("GET", "/v1/server"): Doors.show_server,
    ("POST", "/v1/challenge"): Doors.challenge,
    ("POST", "/v1/login"): Doors.login,
    ("GET", "/v1/device"): Doors.show_device,
    ("POST", "/v1/series"): Doors.send,
    ("GET", "/v1/inbox"): Doors.read,
    ("DELETE", "/v1/inbox"): Doors.delete,
    ("POST", "/v1/keys"): Doors.publish,
    ("POST", "/v1/keys/claim"): Doors.claim,
    ("POST", "/v1/demand"): Doors.demand,
    ("GET", "/v1/checkpoints"): Doors.show_checkpoints,
    ("POST", "/v1/cosignatures"): Doors.cosign,
    ("GET", "/v1/cosignatures"): Doors.show_cosignatures,
}


def parse_device_id(call: Call) -> bytes:
    if len(call.body) != DEVICE_BYTES:
        raise refuse(f"`{len(call.body)}` bytes are no device id")
    return call.body


def parse_sequence(query: str, name: str) -> int:
    return parse_number(dict(parse_qsl(query)).get(name, "0"), name)


def parse_number(text: str, name: str) -> int:
    if not text.isdecimal() or not text.isascii() or int(text) >= 1 << 64:
        message = f"`{text}` is no sequence for `{name}`"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="write a number below 2^64")
    return int(text)

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

import base64
import binascii
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from aiohttp import web

from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Reason, Unavailable
from proofcast.groups.frame import EntryKind
from proofcast.groups.io.reception import Reception
from proofcast.groups.io.stream import push_events, serve_stream
from proofcast.groups.link import encode_list
from proofcast.groups.login import CHALLENGE_BYTES, DEVICE_BYTES, compute_challenge, verify_login, verify_token
from proofcast.groups.server import SEQUENCE
from proofcast.groups.wire import WireReader, refuse

REQUEST_BYTES_MAX = 16 << 20
"""A batch of series; larger ones are sent in parts."""
ANSWER_BYTES_MAX = 4 << 20
"""Packets in one answer; whoever has more asks again from where it ended."""
RETRY_S = "1"

Door = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_application(reception: Reception) -> web.Application:
    doors = Doors(reception)
    application = web.Application(client_max_size=REQUEST_BYTES_MAX, middlewares=[translate_errors])
    application.add_routes(
        [
            web.get("/v1/server", doors.show_server),
            web.post("/v1/challenge", doors.challenge),
            web.post("/v1/login", doors.login),
            web.get("/v1/device", doors.show_device),
            web.post("/v1/series", doors.send),
            web.get("/v1/inbox", doors.read),
            web.delete("/v1/inbox", doors.delete),
            web.get("/v1/events", doors.stream_events),
            web.get("/v1/stream", doors.stream),
            web.post("/v1/keys", doors.publish),
            web.post("/v1/keys/claim", doors.claim),
            web.post("/v1/demand", doors.demand),
            web.get("/v1/checkpoints", doors.show_checkpoints),
            web.post("/v1/cosignatures", doors.cosign),
            web.get("/v1/cosignatures", doors.show_cosignatures),
        ]
    )
    return application


@web.middleware
async def translate_errors(request: web.Request, handler: Door) -> web.StreamResponse:
    try:
        return await handler(request)
    except ProofcastError as error:
        headers = {"Retry-After": RETRY_S} if isinstance(error, Unavailable) else {}
        body = {"reason": error.reason, "message": str(error), "hint": error.hint, "need": error.need}
        return web.json_response(body, status=get_status(error), headers=headers)


def get_status(error: ProofcastError) -> int:
    if isinstance(error, InvalidInput):
        return 422
    if isinstance(error, Unavailable):
        return 503
    return {Reason.BAD_KEY: 401, Reason.NOT_ALLOWED: 403, Reason.STALE_SEQUENCE: 409}.get(error.reason, 400)


class Doors:
    def __init__(self, reception: Reception) -> None:
        self.reception = reception

    def get_device(self, request: web.Request) -> bytes:
        """Who calls; refused without a token of ours."""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        try:
            sealed = base64.urlsafe_b64decode(token) if kind == "Bearer" else b""
        except (binascii.Error, ValueError):
            sealed = b""
        return verify_token(self.reception.key.secret, sealed, time.time())

    async def show_server(self, request: web.Request) -> web.Response:
        return web.json_response({"server_key": self.reception.key.public.hex(), "shards": self.reception.urls})

    async def challenge(self, request: web.Request) -> web.Response:
        device = await self.read_device_id(request)
        return web.Response(body=compute_challenge(self.reception.key.secret, device, time.time()))

    async def read_device_id(self, request: web.Request) -> bytes:
        device = await request.read()
        if len(device) != DEVICE_BYTES:
            raise refuse(f"`{len(device)}` bytes are no device id")
        return device

    async def login(self, request: web.Request) -> web.Response:
        reader = WireReader(await request.read(), "the login")
        device, challenge = reader.take(DEVICE_BYTES), reader.take(CHALLENGE_BYTES)
        signature = reader.take(64)
        key = self.reception.key
        token = verify_login(key.secret, key.public, device, challenge, signature, time.time())
        return web.Response(body=base64.urlsafe_b64encode(token))

    async def show_device(self, request: web.Request) -> web.Response:
        return web.json_response(asdict(self.reception.describe(self.get_device(request))))

    async def send(self, request: web.Request) -> web.Response:
        device = self.get_device(request)
        counter = await self.reception.send_series(device, await request.read())
        return web.Response(body=SEQUENCE.pack(counter))

    async def read(self, request: web.Request) -> web.Response:
        device = self.get_device(request)
        packets, size = [], 0
        for packet in self.reception.read(device, parse_sequence(request, "after")):
            packets.append(packet.data)
            size += len(packet.data)
            if size > ANSWER_BYTES_MAX:
                break
        return web.Response(body=encode_list(packets))

    async def delete(self, request: web.Request) -> web.Response:
        before = SEQUENCE.pack(parse_sequence(request, "before"))
        await self.reception.ask(EntryKind.DELETE, self.get_device(request), before)
        return web.Response()

    async def stream_events(self, request: web.Request) -> web.StreamResponse:
        device = self.get_device(request)
        after = request.headers.get("Last-Event-ID") or request.query.get("after", "0")
        return await push_events(self.reception, request, device, parse_number(after, "after"))

    async def stream(self, request: web.Request) -> web.StreamResponse:
        return await serve_stream(self.reception, request, self.get_device(request), parse_sequence(request, "after"))

    async def publish(self, request: web.Request) -> web.Response:
        await self.reception.ask(EntryKind.KEYS, self.get_device(request), await request.read())
        return web.Response()

    async def claim(self, request: web.Request) -> web.Response:
        device, wanted = self.get_device(request), await self.read_device_id(request)
        bundle = await self.reception.ask(EntryKind.CLAIM, device, wanted)
        if bundle is None:
            message = f"the device `{wanted.hex()}` has no keys left"
            raise Unavailable(Reason.NOT_YET, message, hint="ask its owner to connect it")
        return web.Response(body=bundle)

    async def demand(self, request: web.Request) -> web.Response:
        await self.reception.ask(EntryKind.DEMAND, self.get_device(request), b"")
        return web.Response()

    async def show_checkpoints(self, request: web.Request) -> web.Response:
        return web.Response(body=self.reception.notice.read(parse_sequence(request, "after")))

    async def cosign(self, request: web.Request) -> web.Response:
        """The signatures inside say who it is."""
        reader = WireReader(await request.read(), "the cosignatures")
        witness = reader.take(DEVICE_BYTES)
        await self.reception.ask(EntryKind.COSIGN, witness, reader.data[DEVICE_BYTES:])
        return web.Response()

    async def show_cosignatures(self, request: web.Request) -> web.Response:
        return web.Response(body=self.reception.notice.get_cosignatures(parse_sequence(request, "epoch")))


def parse_sequence(request: web.Request, name: str) -> int:
    return parse_number(request.query.get(name, "0"), name)


def parse_number(text: str, name: str) -> int:
    if not text.isdecimal() or not text.isascii() or int(text) >= 1 << 64:
        message = f"`{text}` is no sequence for `{name}`"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="write a number below 2^64")
    return int(text)

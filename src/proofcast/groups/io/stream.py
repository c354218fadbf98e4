"""Receiving as it happens: server-sent events, and a WebSocket that also takes calls.

The inbox itself is the queue: a connection remembers up to where it has sent, and sends what is beyond. So a slow
reader costs no memory, and one that comes back continues where it was.

    device -> server   id u32 | kind u8 | body                 kind of a frame's entry; SERIES takes a list
    server -> device   packet                                  as it is: its version, the first byte, is 1
                       2 u8 | id u32 | answer                  when the call is durable; SERIES: when it is attested
                       3 u8 | id u32 | refusal in JSON
                       4 u8 | count u16                        few one-time keys are left
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import IntEnum
from struct import Struct

from aiohttp import WSMsgType, web

from proofcast.errors import ProofcastError
from proofcast.groups.frame import EntryKind
from proofcast.groups.io.reception import Reception
from proofcast.groups.series import VERSION
from proofcast.groups.server import SEQUENCE
from proofcast.groups.shard_close import COUNT
from proofcast.groups.wire import refuse

CALL = Struct(">IB")
KEYS_LOW = 10
"""One-time keys left when a device is told to publish more."""
MESSAGE_BYTES_MAX = 16 << 20
KEEP_ALIVE_S = 15
"""Proxies close connections that are silent for a minute; a device that has gone is noticed within two of these."""
KINDS = frozenset(EntryKind)
CALLS_MAX = 64
"""Of one connection that wait for their answer."""
SendPacket = Callable[[int, bytes], Awaitable[None]]
"""Given where the packet ends, and the packet."""
SendLow = Callable[[int], Awaitable[None]]
"""Given how many one-time keys are left."""


class StreamKind(IntEnum):
    PACKET = VERSION
    ANSWER = 2
    REFUSAL = 3
    KEYS_LOW = 4


async def push_packets(reception: Reception, device: bytes, after: int, send: SendPacket, tell: SendLow) -> None:
    """Send packets, and say when keys run low, for as long as the connection lasts."""
    told = KEYS_LOW
    with reception.listen(device) as arrival:
        while True:
            arrival.clear()
            for packet in reception.read(device, after):
                await send(packet.end, packet.data)
                after = packet.end
            left = reception.describe(device).keys
            if left < told:
                await tell(left)
            told = min(left, KEYS_LOW)
            await arrival.wait()


async def push_events(reception: Reception, request: web.Request, device: bytes, after: int) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)

    async def send(end: int, packet: bytes) -> None:
        data = base64.b64encode(packet)
        await response.write(b"id: %d\nevent: packet\ndata: %s\n\n" % (end, data))

    async def tell(left: int) -> None:
        await response.write(b"event: keys-low\ndata: %d\n\n" % left)

    await ignore_loss(push_packets(reception, device, after, send, tell))
    return response


async def serve_stream(reception: Reception, request: web.Request, device: bytes, after: int) -> web.StreamResponse:
    socket = web.WebSocketResponse(max_msg_size=MESSAGE_BYTES_MAX, compress=False, heartbeat=KEEP_ALIVE_S)
    await socket.prepare(request)

    async def send(end: int, packet: bytes) -> None:
        await socket.send_bytes(packet)

    async def tell(left: int) -> None:
        await socket.send_bytes(bytes([StreamKind.KEYS_LOW]) + left.to_bytes(2, "big"))

    async with asyncio.TaskGroup() as tasks:
        pushing = tasks.create_task(ignore_loss(push_packets(reception, device, after, send, tell)))
        calls = asyncio.Semaphore(CALLS_MAX)
        async for message in socket:
            if message.type == WSMsgType.BINARY:
                await calls.acquire()
                call = tasks.create_task(ignore_loss(answer_call(reception, socket, device, message.data)))
                call.add_done_callback(lambda _: calls.release())
        pushing.cancel()
    return socket


async def ignore_loss(work: Awaitable[None]) -> None:
    """A connection that is lost ends its work; the device asks again from where it was."""
    with suppress(ConnectionError):
        await work


async def answer_call(reception: Reception, socket: web.WebSocketResponse, device: bytes, data: bytes) -> None:
    number, kind = CALL.unpack_from(data) if len(data) >= CALL.size else (0, 0)
    try:
        answer = await make_call(reception, device, kind, data[CALL.size :])
        await socket.send_bytes(bytes([StreamKind.ANSWER]) + COUNT.pack(number) + answer)
    except ProofcastError as error:
        body = json.dumps({"reason": error.reason, "message": str(error), "hint": error.hint, "need": error.need})
        await socket.send_bytes(bytes([StreamKind.REFUSAL]) + COUNT.pack(number) + body.encode())


async def make_call(reception: Reception, device: bytes, kind: int, body: bytes) -> bytes:
    if kind not in KINDS:
        raise refuse(f"a call has the unknown kind `{kind}`")
    if kind == EntryKind.SERIES:
        return SEQUENCE.pack(await reception.send_series(device, body))
    return await reception.ask(EntryKind(kind), device, body) or b""

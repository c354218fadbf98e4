"""The WebSocket door: one task reads what the subscriber says, one per subscription sends it batches.

A batch is handed on when the one before is settled, so nothing is queued for anybody: a subscriber that does not
acknowledge costs one batch, one that does not read is ended by the ping it never answers.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from aiohttp import WSCloseCode, WSMsgType, web

from proofcast.broker.conversation import MESSAGE_BYTES_MAX, Conversation, Settle
from proofcast.broker.io.deliveries import LOOKS_PER_LEASE, Deliveries
from proofcast.broker.io.door import DELIVERIES, METRICS, STREAMS
from proofcast.broker.io.hub import Batch
from proofcast.broker.io.metrics import Metrics
from proofcast.broker.io.store.subscriptions import Holding, refuse_fenced
from proofcast.broker.measures import Outcome, Transport
from proofcast.broker.messages import (
    Begin,
    Ephemeral,
    Fields,
    encode_batch,
    encode_error,
    encode_notice,
    find_start,
    parse_object,
    refuse,
)
from proofcast.broker.subscription import Status, Subscription, mark_repeated
from proofcast.broker.subscription import Transport as Kind
from proofcast.errors import ProofcastError

PING_S = 20.0
"""Between pings; who has not answered after half of it is gone."""
CLOSE_S = 1.0
"""For the other side to take leave."""
REPEATED = b'"repeated":"true"}'
"""How an object ends that is marked."""


def add_routes(application: web.Application) -> None:
    application.router.add_get("/api/v1/ws", converse)


async def converse(request: web.Request) -> web.StreamResponse:
    """Batches of events, each acknowledged before the next one is sent."""
    socket = web.WebSocketResponse(heartbeat=PING_S, max_msg_size=MESSAGE_BYTES_MAX, timeout=CLOSE_S, compress=False)
    if not socket.can_prepare(request).ok:
        raise refuse("this is the address of a WebSocket", "connect to it with `ws://`")
    await socket.prepare(request)
    link = Link(socket, request.app[DELIVERIES], request.app[METRICS])
    talking = asyncio.create_task(link.run(request.query))
    request.app[STREAMS].add(talking)
    try:
        await talking
    except asyncio.CancelledError:
        talking.cancel()  # the subscriber has gone, or we close
        await socket.close(code=WSCloseCode.GOING_AWAY)
    finally:
        request.app[STREAMS].discard(talking)
    return socket


class Link:
    """One connection."""

    def __init__(self, socket: web.WebSocketResponse, deliveries: Deliveries, metrics: Metrics) -> None:
        self._socket, self._deliveries, self._metrics = socket, deliveries, metrics
        self._conversation = Conversation()
        self._senders: list[asyncio.Task[None]] = []
        self._settled: dict[str, asyncio.Queue[bool]] = {}
        """By subscription: was its batch acknowledged, or is it wanted again?"""

    async def run(self, query: Mapping[str, str]) -> None:
        """Until the subscriber leaves, or says something that is not understood."""
        with self._metrics.connections.labels(Transport.WEBSOCKET).track_inprogress():
            try:
                async with asyncio.TaskGroup() as group:
                    await self._listen(group, query)
                    for sender in self._senders:
                        sender.cancel()
            except* ConnectionError:
                pass  # it has gone
            except* ProofcastError as failures:
                await self._refuse(failures)

    # --- what the subscriber says

    async def _listen(self, group: asyncio.TaskGroup, query: Mapping[str, str]) -> None:
        started = find_start(query)
        if started is not None:
            self._take(started, group)
        async for message in self._socket:
            if message.type is WSMsgType.BINARY:
                raise refuse("a binary message came", "send JSON as text")
            if message.type is not WSMsgType.TEXT:
                return  # longer than allowed, or no WebSocket's frame: the library has closed already
            self._take(parse_object(message.data), group)

    def _take(self, message: Fields, group: asyncio.TaskGroup) -> None:
        output = self._conversation.receive(message)
        if isinstance(output, Settle):
            self._settled[output.name].put_nowait(output.is_acknowledged)
            return
        self._settled[output.name] = asyncio.Queue(maxsize=1)
        wanted = output.ephemeral
        sending = self._send_stored(output) if wanted is None else self._send_ephemeral(output, wanted)
        self._senders.append(group.create_task(sending))

    async def _refuse(self, failures: ExceptionGroup[ProofcastError]) -> None:
        first: BaseException = failures
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        assert isinstance(first, ProofcastError)
        with suppress(ConnectionError):
            await self._socket.send_str(encode_error(first))
            await self._socket.close(code=WSCloseCode.POLICY_VIOLATION)

    # --- what it is sent

    async def _send_ephemeral(self, begin: Begin, wanted: Ephemeral) -> None:
        async for batch in self._deliveries.hub.subscribe(wanted.selection, wanted.start, wanted.finality):
            if not batch.entries:
                await self._socket.send_str(encode_silence(begin.name, batch))
            for at in range(0, len(batch.entries), begin.read_ahead):
                entries = batch.entries[at : at + begin.read_ahead]
                await self._deliver(begin, entries[-1].delivery.cursor, [entry.json for entry in entries])

    async def _send_stored(self, begin: Begin) -> None:
        verify_startable(await self._deliveries.store.get(begin.name))
        holding = await self._deliveries.hold(begin.name)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep(holding))
                group.create_task(self._send_held(begin, holding))
        finally:
            with suppress(ProofcastError):
                await asyncio.shield(self._deliveries.release(holding))

    async def _send_held(self, begin: Begin, holding: Holding) -> None:
        deliveries, level = self._deliveries, holding.subscription.terms.finality
        while True:
            pending = await deliveries.read(holding, begin.read_ahead)
            if pending:
                await self._deliver(begin, pending[-1].cursor, [one.encode() for one in pending])
                await deliveries.store.acknowledge(holding, [one.ordinal for one in pending])
            else:
                newest = deliveries.hub.history.get_newest(level).block
                await self._socket.send_str(encode_notice("heartbeat", begin.name, newest.number, newest.hash))
                await deliveries.wait(holding)

    async def _keep(self, holding: Holding) -> None:
        """Hold on to the subscription; end when it was changed, or somebody else has it now."""
        while True:
            await asyncio.sleep(self._deliveries.store.lease_s / LOOKS_PER_LEASE)
            generation = (await self._deliveries.store.renew([holding])).get(holding.name)
            if generation is None:
                raise refuse_fenced(holding)
            if generation != holding.subscription.generation:
                raise refuse(f"`{holding.name}` was changed meanwhile", "start it again: it goes on as it is now")

    async def _deliver(self, begin: Begin, batch_id: str, bodies: list[bytes]) -> None:
        """Until the subscriber acknowledges it."""
        while not await self._offer(begin, batch_id, bodies):
            bodies = [body if is_marked(body) else mark_repeated(body) for body in bodies]

    async def _offer(self, begin: Begin, batch_id: str, bodies: list[bytes]) -> bool:
        """Send a batch and wait for what the subscriber says to it."""
        if not begin.autoack:
            self._conversation.offer(begin.name, batch_id)
        await self._socket.send_str(encode_batch(begin.name, batch_id, bodies))
        self._metrics.count(Transport.WEBSOCKET, Outcome.SENT, len(bodies))
        is_acknowledged = begin.autoack or await self._settled[begin.name].get()
        if is_acknowledged:
            self._metrics.count(Transport.WEBSOCKET, Outcome.ACKNOWLEDGED, len(bodies))
        return is_acknowledged


def verify_startable(found: Subscription) -> None:
    if found.terms.transport is not Kind.WEBSOCKET:
        raise refuse(f"`{found.name}` is delivered by `{found.terms.transport}`", "change its transport to `websocket`")
    if found.status is not Status.ACTIVE:
        raise refuse(f"`{found.name}` is `{found.status}`", "resume it first")


def is_marked(body: bytes) -> bool:
    return body.endswith(REPEATED)


def encode_silence(name: str, batch: Batch) -> str:
    if batch.rewound_to is None:
        return encode_notice("heartbeat", name, batch.newest.number, batch.newest.hash)
    return encode_notice("rewind", name, batch.rewound_to.block_number, batch.rewound_to.block_hash)

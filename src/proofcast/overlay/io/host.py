"""A peer on libp2p: one host, one stream to each neighbour, kept open, many messages in one write.

The driver makes no decision about the protocol: it hands messages to the peer and carries out what the peer puts out. A
stream is opened by whoever speaks first and used by both; its first frame in each direction is `Hello`, whose contact
must carry the key that the connection has authenticated. A neighbour that cannot be dialled or written to is reported
for every message that waited for it.
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import multiaddr  # type: ignore[import-untyped]
import trio
from libp2p import new_host
from libp2p.abc import IHost, INetStream
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.custom_types import TProtocol
from libp2p.exceptions import BaseLibp2pError
from libp2p.network.config import ConnectionConfig
from libp2p.network.exceptions import RateLimitError
from libp2p.peer.peerinfo import PeerInfo

from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.overlay.codec import FrameReader, encode_frame
from proofcast.overlay.identity import Contact, Ed25519Signer, is_contact_genuine, make_contact, verify_ed25519
from proofcast.overlay.io.addresses import find_public_key, parse_address
from proofcast.overlay.io.kad import PRIVATE_KAD, ask_find_node, make_kad_server
from proofcast.overlay.io.line import Line
from proofcast.overlay.io.reading import StreamReader
from proofcast.overlay.messages import Hello, Message
from proofcast.overlay.outputs import Output, Send
from proofcast.overlay.peer import Peer

PROTOCOL = "/proofcast/overlay/1.0.0"
WAITING_MAX = 5_000
"""Messages that wait for one neighbour; more are dropped and counted, and repeated by whoever awaits an answer."""
DIAL_S_MAX = 10.0
"""py-libp2p needs 12 ms on one machine; a silent address must not hold its messages for longer."""
REST_S = 0.020
"""Between two writes to a neighbour, because a write costs as much as ten messages; after a pause none waits."""
CLOSE_S_MAX = 2.0
"""Neighbours that do not let go must not keep a host from ending."""
LINES_MAX = 200
"""Streams kept open; the one unused for longest is closed first."""
FAILURES = (BaseLibp2pError, RateLimitError, OSError, EOFError, ValueError, trio.TooSlowError, trio.BrokenResourceError)
"""What libp2p and trio raise when the other side is not there."""


class Host:
    """Use `open_host` to make one."""

    def __init__(self, peer: Peer, libp2p: IHost, nursery: trio.Nursery, on_output: Callable[[Output], None]) -> None:
        self.peer = peer
        self.libp2p = libp2p
        self.dropped = 0
        self._nursery = nursery
        self._on_output = on_output
        self._lines: dict[bytes, Line] = {}
        self._greetings: dict[bytes, trio.Event] = {}
        self._known: dict[bytes, Contact] = {}
        self._rearm = trio.Event()
        self._armed_for = 0.0

    # --- what the user of the host calls

    def carry_out(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            if isinstance(output, Send):
                self._send(output.to, output.message)
            else:
                self._on_output(output)
        deadline = self.peer.deadline()
        if deadline is not None and deadline < self._armed_for:
            self._rearm.set()

    async def greet(self, address: str) -> Contact:
        """Open a stream to an address and return the contact that answers there."""
        info = parse_address(address)
        public_key = find_public_key(info.peer_id)
        if public_key in self._known and public_key in self._lines:
            return self._known[public_key]
        line = self._lines.setdefault(public_key, Line(Contact(public_key, address, b"")))
        self._greetings[public_key] = trio.Event()
        try:
            with trio.fail_after(DIAL_S_MAX):
                if line.stream is None:
                    await self._open(line)
                await self._greetings[public_key].wait()
        except FAILURES:
            self._lines.pop(public_key, line).close()
            message = f"no peer answers at `{address}`"
            raise Unavailable(Reason.NO_ANSWER, message, hint="is it running, and is the address whole?") from None
        return self._known[public_key]

    async def find_contacts(self, address: str, kad_protocol: str) -> list[Contact]:
        """The contact at an address or, where a host of another kind lives there, those that it knows by Kademlia."""
        try:
            return [await self.greet(address)]
        except Unavailable as refusal:
            named = await self._ask_for_peers(parse_address(address), kad_protocol)
            contacts = [contact for one in named if (contact := await self._find_contact(one)) is not None]
            if not contacts:
                raise refusal from None
            return contacts

    async def _ask_for_peers(self, partner: PeerInfo, kad_protocol: str) -> list[str]:
        try:
            with trio.fail_after(DIAL_S_MAX):
                await self.libp2p.connect(partner)
            own = self.libp2p.get_id()
            named = await ask_find_node(self.libp2p, partner.peer_id, own.to_bytes(), kad_protocol)
            return [address for address in named if not address.endswith(f"/p2p/{own}")]
        except (*FAILURES, Unavailable):
            return []

    async def _find_contact(self, address: str) -> Contact | None:
        try:
            return await self.greet(address)
        except (Unavailable, InvalidRequest, InvalidInput):
            return None

    def get_neighbours(self) -> list[Contact]:
        """Peers with an open stream."""
        return [line.contact for line in self._lines.values() if line.stream is not None]

    def is_busy(self) -> bool:
        """Does anything wait to be written?"""
        return any(line.waiting for line in self._lines.values())

    # --- streams

    def _send(self, to: Contact, message: Message) -> None:
        line = self._lines.get(to.public_key)
        if line is None:
            line = self._lines[to.public_key] = Line(to)
            self._nursery.start_soon(self._dial, line)
            self._close_idle()
        if len(line.waiting) >= WAITING_MAX:
            self.dropped += 1
            return
        line.add(message)

    async def _dial(self, line: Line) -> None:
        try:
            with trio.fail_after(DIAL_S_MAX):
                await self._open(line)
        except (*FAILURES, InvalidRequest):  # an address that is none is as good as a silent one
            self._give_up(line)

    async def _open(self, line: Line) -> None:
        info = parse_address(line.contact.address)
        await self.libp2p.connect(info)
        stream = await self.libp2p.new_stream(info.peer_id, [TProtocol(PROTOCOL)])
        self._use(line, stream)
        self._nursery.start_soon(self._read, stream)

    def _use(self, line: Line, stream: INetStream) -> None:
        if line.stream is None:
            line.stream = stream
            self._nursery.start_soon(self._write, line, stream)

    async def _write(self, line: Line, stream: INetStream) -> None:
        """Everything that waits in one write, then rest: what comes meanwhile shares the next write."""
        pending: list[Message] = []
        rested = trio.current_time()
        try:
            await stream.write(encode_frame(Hello(self.peer.seat.contact)))
            while await line.wait_until_due(rested):
                pending, line.waiting, line.due = line.waiting, [], float("inf")
                await stream.write(b"".join(map(encode_frame, pending)))
                line.used, pending = time.time(), []
                rested = trio.current_time() + REST_S
        except FAILURES:
            line.waiting = [*pending, *line.waiting]
            self._give_up(line)

    def _give_up(self, line: Line) -> None:
        """Report what could not be written; the peer decides what becomes of it."""
        if self._lines.get(line.contact.public_key) is line:
            del self._lines[line.contact.public_key]
        line.close()
        waiting, line.waiting = line.waiting, []
        for message in waiting:
            self.carry_out(self.peer.undeliverable(line.contact, message, time.time()))

    def _close_idle(self) -> None:
        if len(self._lines) > LINES_MAX:
            idle = [line for line in self._lines.values() if line.stream is not None and not line.waiting]
            if idle:
                oldest = min(idle, key=lambda line: line.used)
                del self._lines[oldest.contact.public_key]
                oldest.close()

    async def serve(self, stream: INetStream) -> None:
        """A stream that a neighbour opened."""
        await self._read(stream)

    async def _read(self, stream: INetStream) -> None:
        reader = FrameReader()
        public_key = b""
        try:
            public_key = find_public_key(stream.muxed_conn.peer_id)
            source = StreamReader(stream)
            while data := await source.read():
                for message in reader.feed(data):
                    self._receive(public_key, message, stream)
        except FAILURES:
            pass
        except InvalidInput:
            self.peer.seat.counts["forged"] += 1
        line = self._lines.get(public_key)
        if line is not None and line.stream is stream:
            self._give_up(line)
        with trio.CancelScope(shield=True), trio.move_on_after(1):
            await stream.reset()

    def _receive(self, public_key: bytes, message: Message, stream: INetStream) -> None:
        if isinstance(message, Hello):
            self._welcome(public_key, message.contact, stream)
        elif public_key in self._known:
            self.carry_out(self.peer.receive(self._known[public_key], message, time.time()))
        else:
            raise InvalidInput(Reason.MALFORMED, "a stream begins without `Hello`", hint="disconnect the peer")

    def _welcome(self, public_key: bytes, contact: Contact, stream: INetStream) -> None:
        if contact.public_key != public_key or not is_contact_genuine(contact, verify_ed25519):
            raise InvalidInput(Reason.DISAGREES, "a `Hello` names another peer than its sender", hint="disconnect it")
        self._known[public_key] = contact
        line = self._lines.setdefault(public_key, Line(contact))
        line.contact = contact
        self._use(line, stream)
        if public_key in self._greetings:
            self._greetings[public_key].set()

    # --- time

    async def keep_time(self) -> None:
        """Call `tick` when the peer wants it."""
        while True:
            deadline = self.peer.deadline()
            self._armed_for = float("inf") if deadline is None else deadline
            with trio.move_on_after(max(0.0, self._armed_for - time.time())):
                await self._rearm.wait()
            self._rearm = trio.Event()
            self.carry_out(self.peer.tick(time.time()))


@asynccontextmanager
async def open_host(
    seed: bytes,
    listen: str,
    make_peer: Callable[[Contact, Ed25519Signer], Peer],
    on_output: Callable[[Output], None],
    announce: str | None = None,
    kad_protocol: str = PRIVATE_KAD,
) -> AsyncIterator[Host]:
    """Listen, make the peer that others will reach at this address, and run it until the block ends."""
    libp2p = new_host(
        key_pair=create_new_key_pair(seed),
        # Without these py-libp2p waits 250 ms before each dial and drifts to a connection with everybody.
        connection_config=ConnectionConfig(max_connections_per_peer=1, min_connections=0, low_watermark=0),
    )
    async with libp2p.run([multiaddr.Multiaddr(listen)]), trio.open_nursery() as nursery:
        signer = Ed25519Signer(seed)
        address = announce or str(libp2p.get_addrs()[0])
        host = Host(make_peer(make_contact(signer, address), signer), libp2p, nursery, on_output)
        libp2p.set_stream_handler(TProtocol(PROTOCOL), host.serve)
        libp2p.set_stream_handler(TProtocol(kad_protocol), make_kad_server(host.peer.seat.table))
        nursery.start_soon(host.keep_time)
        try:
            yield host
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(CLOSE_S_MAX):
                await libp2p.close()
            nursery.cancel_scope.cancel()

"""libp2p's own Kademlia, as far as a peer of ours takes part in it: FIND_NODE, answered and asked.

Positions are the same in both, so an answer comes straight from the peer's table. The protocol id is private by
default: a network of its own. With that of another network (`/ipfs/lan/kad/1.0.0` for kubo's LAN table) hosts that
never heard of our overlay take this one into their tables, and it learns from them where others are; what they name is
only ever an address to greet, never a contact. Values and providers are nobody's business here.
"""

from collections.abc import Awaitable, Callable
from hashlib import sha256

import multiaddr  # type: ignore[import-untyped]
import trio
from google.protobuf.message import DecodeError
from libp2p.abc import IHost, INetStream
from libp2p.custom_types import TProtocol
from libp2p.exceptions import BaseLibp2pError
from libp2p.kad_dht.pb.kademlia_pb2 import Message
from libp2p.peer.id import ID
from libp2p.utils.varint import encode_varint_prefixed, read_varint_prefixed_bytes_limited

from proofcast.errors import Reason, Unavailable
from proofcast.overlay.identity import ED25519_PEER_ID_PREFIX, Contact
from proofcast.overlay.kademlia import Table

PRIVATE_KAD = "/proofcast/kad/1.0.0"
KAD_BYTES_MAX = 64 * 1024
"""An answer names twenty peers with a few addresses each."""
KAD_ANSWERED = 20
"""Peers named in an answer, `k` of libp2p's networks."""
ASK_S_MAX = 10.0
REQUESTS_MAX = 1_000
"""On one stream; who wants more opens another."""
FAILURES = (BaseLibp2pError, DecodeError, OSError, EOFError, ValueError, trio.TooSlowError, trio.BrokenResourceError)


def make_kad_server(table: Table) -> Callable[[INetStream], Awaitable[None]]:
    """The handler of the protocol for a host with this table."""

    async def serve(stream: INetStream) -> None:
        try:
            for _ in range(REQUESTS_MAX):
                request = Message.FromString(await read_varint_prefixed_bytes_limited(stream, KAD_BYTES_MAX))
                await stream.write(encode_varint_prefixed(answer(table, request).SerializeToString()))
        except FAILURES:
            pass
        with trio.CancelScope(shield=True), trio.move_on_after(1):
            await stream.reset()

    return serve


def answer(table: Table, request: Message) -> Message:
    """FIND_NODE with the nearest contacts; anything else with the question, which means that nothing is known."""
    reply = Message(type=request.type, key=request.key)
    if request.type == Message.MessageType.FIND_NODE:
        target = int.from_bytes(sha256(request.key).digest())
        reply.closerPeers.extend(map(describe, table.find_closest(target, KAD_ANSWERED)))
    return reply


def describe(contact: Contact) -> Message.Peer:
    """A peer id and where it listens; the address without the id, as libp2p writes it."""
    transport, _, _ = contact.address.partition("/p2p/")
    addresses = [multiaddr.Multiaddr(transport).to_bytes()] if transport else []
    peer_id = ED25519_PEER_ID_PREFIX + contact.public_key
    return Message.Peer(id=peer_id, addrs=addresses, connection=Message.ConnectionType.CAN_CONNECT)


async def ask_find_node(host: IHost, partner: ID, key: bytes, protocol: str) -> list[str]:
    """The addresses of the peers nearest to a key that a connected host knows, each with its peer id."""
    try:
        with trio.fail_after(ASK_S_MAX):
            stream = await host.new_stream(partner, [TProtocol(protocol)])
            request = Message(type=Message.MessageType.FIND_NODE, key=key)
            await stream.write(encode_varint_prefixed(request.SerializeToString()))
            reply = Message.FromString(await read_varint_prefixed_bytes_limited(stream, KAD_BYTES_MAX))
            await stream.reset()
            return [address for peer in reply.closerPeers[:KAD_ANSWERED] for address in format_addresses(peer)]
    except FAILURES:
        message = f"`{partner}` does not answer FIND_NODE by `{protocol}`"
        raise Unavailable(Reason.NO_ANSWER, message, hint="does it serve this protocol id?") from None


def format_addresses(peer: Message.Peer) -> list[str]:
    return [f"{multiaddr.Multiaddr(address)}/p2p/{ID(peer.id)}" for address in peer.addrs]

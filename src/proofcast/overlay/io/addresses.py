"""Addresses and ids of peers, as libp2p writes them."""

import multiaddr  # type: ignore[import-untyped]
from libp2p.exceptions import BaseLibp2pError
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import PeerInfo, info_from_p2p_addr

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.overlay.identity import ED25519_PEER_ID_PREFIX


def find_public_key(peer_id: ID) -> bytes:
    """An Ed25519 peer id contains its public key; peers with other keys cannot take part."""
    raw = peer_id.to_bytes()
    if not raw.startswith(ED25519_PEER_ID_PREFIX):
        raise InvalidInput(Reason.BAD_KEY, f"`{peer_id}` is no Ed25519 peer id", hint="give the peer an Ed25519 key")
    return raw[len(ED25519_PEER_ID_PREFIX) :]


def make_peer_id(public_key: bytes) -> str:
    return str(ID(ED25519_PEER_ID_PREFIX + public_key))


def parse_address(address: str) -> PeerInfo:
    try:
        return info_from_p2p_addr(multiaddr.Multiaddr(address))
    except (ValueError, BaseLibp2pError):
        hint = "write e.g. `/ip4/127.0.0.1/tcp/4001/p2p/12D3Koo...`"
        raise InvalidRequest(Reason.BAD_ARGUMENT, f"`{address}` is no address of a peer", hint=hint) from None

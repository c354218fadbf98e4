"""Every message between peers. Who sent one is known from the connection, which authenticates its two ends.

| protocol | messages |
|---|---|
| connection | `Hello`, read by the driver |
| Kademlia | `FindNode` -> `Nodes` |
| ScoutSubs, subscriptions | `Subscribe` -> `Subscribed`, `Replicate` |
| ScoutSubs, events | `Publish` -> `Accepted`, `Notify` -> `Ack` or `Unable`, `Track` -> `Tracked`, `Settled` |
| ScoutSubs, the recent past | `Recall` -> `Recalled`, `Fetch` -> `Replay`, `Handover` |
| FastDelivery, groups | `Advertise`, `Search` -> `Adverts`, `JoinGroup` -> `Joined`, `LeaveGroup` |
| FastDelivery, events | `Recruit` -> `Recruited`, `Relay` -> `Relayed` |
"""

from dataclasses import dataclass

from proofcast.overlay.identity import Contact
from proofcast.overlay.records import Advert, Digest, Event, EventId, Interest
from proofcast.routing.predicate import Predicate

# --- Kademlia


@dataclass(frozen=True, slots=True)
class FindNode:
    target: int


@dataclass(frozen=True, slots=True)
class Nodes:
    target: int
    contacts: tuple[Contact, ...]


# --- ScoutSubs: subscriptions


@dataclass(frozen=True, slots=True)
class Subscribe:
    interest: Interest
    shortcut: Interest | None
    """The statement of the one peer below the sender: events may skip the sender and go there."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Events of the key now find their way to whatever the statement of this version asked for."""

    key: int
    version: int


@dataclass(frozen=True, slots=True)
class Replicate:
    """Part of the sender's filter table, for the case that the sender vanishes."""

    key: int
    is_rendezvous: bool
    """The sender is the rendezvous of the key: its successor needs the copy, not only its stand-ins."""
    statements: tuple[Subscribe, ...]


# --- ScoutSubs: events


@dataclass(frozen=True, slots=True)
class Publish:
    """On its way to the rendezvous of the key, each hop closer than the last."""

    event: Event
    key: int
    reply_to: Contact


@dataclass(frozen=True, slots=True)
class Accepted:
    """The rendezvous has the event, and so have its trackers: the publisher may forget it."""

    event_id: EventId
    key: int


@dataclass(frozen=True, slots=True)
class Notify:
    """On its way from the rendezvous of the key to the interested."""

    event: Event
    key: int
    stand_in_for: bytes | None
    """Forward it in the place of this peer, from the copy of its table."""


@dataclass(frozen=True, slots=True)
class Ack:
    """Everybody below has it."""

    event_id: EventId
    key: int
    stand_in_for: bytes | None


@dataclass(frozen=True, slots=True)
class Unable:
    """The receiver holds no copy of that peer's table: ask another."""

    event_id: EventId
    key: int
    stand_in_for: bytes


@dataclass(frozen=True, slots=True)
class Track:
    """Keep the event and publish it again unless `Settled` comes."""

    event: Event
    key: int


@dataclass(frozen=True, slots=True)
class Tracked:
    event_id: EventId
    key: int


@dataclass(frozen=True, slots=True)
class Settled:
    event_id: EventId
    key: int


# --- ScoutSubs: the recent past


@dataclass(frozen=True, slots=True)
class Recall:
    """Which events of the key passed since then that one of these filters lets through?"""

    key: int
    filters: tuple[Predicate, ...]
    since_ms: int


@dataclass(frozen=True, slots=True)
class Recalled:
    digest: Digest


@dataclass(frozen=True, slots=True)
class Fetch:
    key: int
    ids: tuple[EventId, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    key: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Handover:
    """The log of a key, from its rendezvous to the closer one that replaces it."""

    key: int
    events: tuple[Event, ...]


# --- FastDelivery


@dataclass(frozen=True, slots=True)
class Advertise:
    """On its way to the rendezvous of the key, and from there to its backups."""

    advert: Advert
    key: int
    is_copy: bool


@dataclass(frozen=True, slots=True)
class Search:
    key: int
    predicate: Predicate
    reply_to: Contact


@dataclass(frozen=True, slots=True)
class Adverts:
    predicate: Predicate
    adverts: tuple[Advert, ...]


@dataclass(frozen=True, slots=True)
class JoinGroup:
    group: Predicate
    predicate: Predicate
    member: Contact
    region: str
    capacity: int


@dataclass(frozen=True, slots=True)
class Joined:
    group: Predicate
    predicate: Predicate
    is_admitted: bool


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    group: Predicate


@dataclass(frozen=True, slots=True)
class Delegate:
    """A member that a helper serves."""

    member: Contact
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Recruit:
    """All that the receiver is asked to serve from now on; without delegates it is released."""

    group: Predicate
    version: int
    delegates: tuple[Delegate, ...]


@dataclass(frozen=True, slots=True)
class Recruited:
    group: Predicate
    version: int
    is_willing: bool


@dataclass(frozen=True, slots=True)
class Relay:
    """An event of a group, straight from its publisher or through one helper."""

    group: Predicate
    event: Event
    by_helper: bool


@dataclass(frozen=True, slots=True)
class Relayed:
    """The member has it; from a helper: it and all of its interested delegates but these have it."""

    group: Predicate
    event_id: EventId
    unreached: tuple[bytes, ...]


# --- the connection


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame in each direction of a stream: how to reach the peer at this end later."""

    contact: Contact


Message = (
    FindNode
    | Nodes
    | Subscribe
    | Subscribed
    | Replicate
    | Publish
    | Accepted
    | Notify
    | Ack
    | Unable
    | Track
    | Tracked
    | Settled
    | Recall
    | Recalled
    | Fetch
    | Replay
    | Handover
    | Advertise
    | Search
    | Adverts
    | JoinGroup
    | Joined
    | LeaveGroup
    | Recruit
    | Recruited
    | Relay
    | Relayed
    | Hello
)
"""The order is that of the tags on the wire: new messages are added at the end."""

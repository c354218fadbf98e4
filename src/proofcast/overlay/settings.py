"""What an operator may choose, and the bounds that nobody may exceed."""

from dataclasses import dataclass

FRAME_BYTES_MAX = 1 << 20
"""A message on the wire: a payload of the largest size with room for what surrounds it."""
PAYLOAD_BYTES_MAX = 256 * 1024
"""One block of IPFS; larger content travels as a CID in the payload."""
ATTRIBUTES_MAX = 16
"""Attributes of an event: it is sent to the rendezvous of each."""
FILTERS_MAX = 64
"""Filters that one peer states to another under one key; beyond it they are widened, at last to everything."""
SUBSCRIPTIONS_MAX = 1_000
"""Own subscriptions of one peer."""
STATEMENTS_MAX = 50_000
"""Statements of others that a peer holds, its own children and copies together."""
CHILDREN_MAX = 2_000
"""Peers below one peer under one key: an honest network of 100,000 peers needs a tenth of it."""
PASSAGES_MAX = 20_000
"""Events on their way that a peer remembers; the oldest is forgotten first."""
TRACKED_MAX = 10_000
"""Events of a rendezvous that a peer stands ready to repeat."""
UNACCEPTED_MAX = 1_000
"""Own events not yet accepted by a rendezvous; beyond it publishing is refused until some are."""
LOG_EVENTS_MAX = 1_000
"""Events that a rendezvous keeps for late joiners, per key."""
LOG_KEYS_MAX = 1_000
"""Keys for which a peer keeps a log."""
DIGEST_EVENTS_MAX = 500
"""Event ids in one answer to a recall; the asker comes back for the rest."""
WINDOW_EVENTS = 4_096
"""How far behind the newest event of a publisher's session one may arrive and still be told from a repetition."""
SESSIONS_MAX = 10_000
"""Publishers' sessions whose windows a peer remembers."""
ADVERTS_MAX = 1_000
"""Adverts on one board."""
MEMBERS_MAX = 10_000
"""Members of one multicast group."""
LOST_MAX = 64
"""Vanished peers that are asked now and then whether they are back: what joins a healed partition."""
CLOCK_SKEW_S_MAX = 30.0
"""How wrong a peer's clock may be without losing an event in a recall."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One per peer; peers of one network may differ in all of it."""

    redirect: bool = True
    """Offer and use shortcuts past peers with a single child."""
    reliable: bool = True
    """Acknowledge, track and repeat events until they are delivered."""
    backups: int = 2
    """Peers that hold a copy of each filter table, `f` of the paper: so many neighbours may vanish at once."""
    refresh_s: float = 900.0
    """`t` of the paper: own statements are renewed so often; those not renewed for up to `2t` are dropped."""
    resend_s: float = 10.0
    """How long a missing answer is waited for before the next attempt."""
    resends_max: int = 8
    """Attempts after which an event is left to the log, and a subscription to the next refresh."""
    bucket_contacts: int = 20
    """`k` of Kademlia."""
    parallel_queries: int = 3
    """`alpha` of Kademlia, on each path."""
    disjoint_paths: int = 2
    """`d` of S/Kademlia: a lookup succeeds while one of so many paths is free of liars."""
    query_s: float = 3.0
    """A peer that has not answered a lookup by then is passed over."""
    log_s: float = 3600.0
    """How long a rendezvous keeps an event for late joiners and for repair: the retention that is promised."""
    region: str = ""
    """Where the peer is, for multicast groups."""
    capacity: int = 0
    """Members of a multicast group that the peer is ready to serve for its publisher."""
    direct_per_region_max: int = 5
    """Members of one region that a publisher serves itself before it recruits a helper there."""

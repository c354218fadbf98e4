"""Peers that lie, with real Ed25519: what each can do at worst.

| attack | harm |
|---|---|
| forged or altered event | none: dropped at the first honest peer, counted |
| forged statement, copy, acknowledgement, acceptance, advert | none: dropped, counted |
| false filters ("send me everything") | the liar gets what anybody may ask for; nobody else gets less |
| acknowledging and dropping on the way | those below get it at their next refresh, from the log |
| flood | its own messages beyond the allowance are dropped; others' are served |
| owning the closest ids to an attribute's key | events of that attribute can be withheld from subscriptions kept under
  it, never forged; subscriptions kept under the other attributes of the event get it |
"""

from dataclasses import replace

import pytest

from proofcast.overlay.allowance import BURST_MESSAGES
from proofcast.overlay.identity import Ed25519Signer, compute_key, make_contact
from proofcast.overlay.messages import (
    Accepted,
    Ack,
    Advertise,
    FindNode,
    Message,
    Notify,
    Publish,
    Recalled,
    Replicate,
    Subscribe,
    Subscribed,
    Track,
)
from proofcast.overlay.records import Advert, Digest, Event, EventId, Interest, sign_event
from proofcast.overlay.settings import FILTERS_MAX, STATEMENTS_MAX, Settings
from proofcast.overlay.statements import Statements
from proofcast.routing.attributes import parse_attributes
from proofcast.routing.predicate import parse_predicate
from proofcast.testing.overlay.network import Network, Node, make_hostile_network

KEY = compute_key("surf")
LIAR = 9


@pytest.fixture
def network() -> Network:
    """Ten peers, of which all but the liar want `surf T`."""
    made = make_hostile_network(10, seed=3, settings=Settings(refresh_s=60, resend_s=1))
    for index in range(LIAR):
        made.subscribe(index, "surf T")
    made.run(1)
    return made


def make_event(signer_of: Node, publisher: Node) -> Event:
    event = Event(EventId(publisher.contact.public_key, 7, 1), 0, parse_attributes("surf T"), b"false")
    return sign_event(signer_of.signer, event)


def tell(network: Network, target: Node, message: Message) -> None:
    liar = network.nodes[LIAR]
    network.carry_out(target, target.peer.receive(liar.contact, message, network.now))


@pytest.mark.parametrize("kind", [Notify, Publish, Track])
def test_forged_event_is_not_delivered(network: Network, kind: type[Message]) -> None:
    victim, liar = network.nodes[0], network.nodes[LIAR]
    event = make_event(signer_of=liar, publisher=victim)
    for node in network.nodes[:LIAR]:
        last = {Notify: None, Publish: liar.contact}
        arguments = (event, KEY, last[kind]) if kind in last else (event, KEY)
        tell(network, node, kind(*arguments))  # type: ignore[arg-type]
    network.run(5)
    assert network.oracle.deliveries == []
    assert all(node.peer.seat.counts["forged"] for node in network.nodes[:LIAR])


def test_event_altered_on_its_way_is_not_delivered(network: Network) -> None:
    def alter(source: int, target: int, message: Message) -> Message:
        if isinstance(message, Notify):
            return replace(message, event=replace(message.event, payload=b"altered"))
        return message

    root = min(network.nodes, key=lambda node: node.contact.position ^ KEY)
    network.on_message = alter
    network.publish(root.index, "surf T", b"true")
    network.run(5)
    assert {delivery.peer for delivery in network.oracle.deliveries} <= {root.index}


def make_interest(signer_of: Node, origin: Node, text: str = "surf T") -> Interest:
    interest = Interest(origin.contact, KEY, 1 << 60, (parse_predicate(text),), False, ())
    return replace(interest, signature=signer_of.signer.sign(interest.encode_claim()))


def test_forged_subscription_is_refused(network: Network) -> None:
    """P3: neither in another's name nor with another's signature."""
    root = min(network.nodes, key=lambda node: node.contact.position ^ KEY)
    victim = next(node for node in network.nodes[:LIAR] if node is not root)
    before = root.peer.scout.statements.get_children(KEY)
    withdrawal = Interest(victim.contact, KEY, 1 << 60, (), False, ())
    signed_by_liar = replace(withdrawal, signature=network.nodes[LIAR].signer.sign(withdrawal.encode_claim()))
    genuine_of_victim = make_interest(victim, victim)
    for interest in (signed_by_liar, genuine_of_victim):
        tell(network, root, Subscribe(interest, None))
    assert root.peer.scout.statements.get_children(KEY) == before
    assert root.peer.seat.counts["forged"] == 2


def test_forged_copy_is_refused(network: Network) -> None:
    root, liar = min(network.nodes, key=lambda node: node.contact.position ^ KEY), network.nodes[LIAR]
    tell(network, root, Replicate(KEY, True, (Subscribe(make_interest(liar, network.nodes[1]), None),)))
    assert root.peer.scout.statements.find_copy(liar.contact.public_key, KEY) is None
    assert root.peer.seat.counts["forged"] == 1


def test_forged_shortcut_is_refused(network: Network) -> None:
    """A shortcut is the statement of the peer it leads to: nobody is sent events it has not asked for."""
    root, liar = min(network.nodes, key=lambda node: node.contact.position ^ KEY), network.nodes[LIAR]
    tell(network, root, Subscribe(make_interest(liar, liar), make_interest(liar, network.nodes[1])))
    assert root.peer.seat.counts["forged"] == 1


def test_forged_ack_is_refused(network: Network) -> None:
    """P3: only whoever was asked can acknowledge, so the event is sent again."""
    root = min(network.nodes, key=lambda node: node.contact.position ^ KEY)
    network.on_message = lambda source, target, message: None if isinstance(message, Notify) else message
    event_id = network.publish(root.index, "surf T")
    tell(network, root, Ack(event_id, KEY, None))
    assert root.peer.seat.counts["forged"] == 1
    network.on_message = lambda source, target, message: message
    network.run(5)
    assert len(network.oracle.deliveries) == LIAR


def test_forged_subscribed_is_refused(network: Network) -> None:
    tell(network, network.nodes[0], Subscribed(compute_key("nowhere"), 1))
    assert network.nodes[0].peer.seat.counts["forged"] == 1


def test_forged_acceptance_of_an_unknown_event_is_ignored(network: Network) -> None:
    """An event is accepted by whoever was asked to; the publisher of another goes on sending it."""
    node = network.nodes[0]
    network.on_message = lambda source, target, message: None if isinstance(message, Publish) else message
    network.publish(node.index, "surf T")
    before = list(node.outputs)
    tell(network, node, Accepted(EventId(b"x" * 32, 1, 1), KEY))
    assert node.outputs == before
    network.on_message = lambda source, target, message: message
    network.run(30)
    assert len(network.oracle.deliveries) == LIAR


def test_forged_advert_is_refused(network: Network) -> None:
    advert = Advert(network.nodes[1].contact, parse_predicate("surf T"), 1, True, b"false" * 10)
    root = min(network.nodes, key=lambda node: node.contact.position ^ KEY)
    tell(network, root, Advertise(advert, KEY, is_copy=True))
    assert not root.peer.boards.boards
    assert root.peer.seat.counts["forged"] == 1


@pytest.mark.parametrize("count", [0, 5])
def test_digest_that_does_not_add_up_is_refused(network: Network, count: int) -> None:
    ids = (EventId(b"p" * 32, 1, 1),)
    digest = Digest(KEY, 0, 1, count, b"", ids)
    signed = replace(digest, signature=network.nodes[LIAR].signer.sign(digest.encode_claim()))
    tell(network, network.nodes[0], Recalled(signed))
    assert network.nodes[0].peer.seat.counts["forged"] == 1


def test_false_filters_take_nothing_from_others(network: Network) -> None:
    """A liar that states the widest filters, and as many as it likes, gets events that anybody may ask for; no more."""
    root, liar = min(network.nodes, key=lambda node: node.contact.position ^ KEY), network.nodes[LIAR]
    too_many = tuple(parse_predicate(f"surf T/w{number} T") for number in range(FILTERS_MAX + 1))
    interest = Interest(liar.contact, KEY, 5, too_many, False, ())
    tell(network, root, Subscribe(replace(interest, signature=liar.signer.sign(interest.encode_claim())), None))
    assert root.peer.seat.counts["forged"] == 1
    interest = Interest(liar.contact, KEY, 6, (), True, ())
    tell(network, root, Subscribe(replace(interest, signature=liar.signer.sign(interest.encode_claim())), None))
    network.publish(0, "surf T")
    network.run(5)
    assert len(network.oracle.deliveries) == LIAR


@pytest.mark.slow
def test_statements_are_bounded() -> None:
    statements, signer = Statements(), Ed25519Signer(bytes(32))
    contact = make_contact(signer, "")
    for key in range(STATEMENTS_MAX):
        statements.put(Subscribe(Interest(contact, key, 1, (parse_predicate("surf T"),), False, ()), None))
    assert statements.is_full(KEY)
    assert len(statements) == STATEMENTS_MAX


def test_interior_peer_that_acknowledges_and_drops_is_repaired() -> None:
    """A signed count and chain of the matching ids comes straight from the rendezvous; what is missing is fetched."""
    network = make_hostile_network(40, seed=5, settings=Settings(refresh_s=60, bucket_contacts=3, redirect=False))
    for index in range(40):
        network.subscribe(index, "surf T")
    network.run(1)
    root = min(network.nodes, key=lambda node: node.contact.position ^ KEY)
    relays = [node.index for node in network.nodes if node is not root and node.peer.scout.statements.get_children(KEY)]
    assert relays, "a relay is what this test is about"
    for index in relays:
        network.nodes[index].peer.scout.statements.tables[
            KEY
        ].clear()  # so it forwards nothing and acknowledges at once
    network.publish(root.index, "surf T")
    network.run(1)
    assert len(network.oracle.deliveries) < 40
    network.run(2 * 60)
    verdict = network.oracle.judge(network.get_present())
    assert (verdict.missing, verdict.twice) == ((), 0)
    assert sum(node.peer.seat.counts["repaired"] for node in network.nodes) > 0


@pytest.mark.slow
def test_flood_is_throttled_and_others_are_served(network: Network) -> None:
    target = network.nodes[0]
    for _ in range(BURST_MESSAGES + 10):
        tell(network, target, FindNode(1))
    assert target.peer.seat.counts["throttled"] == 10
    network.publish(1, "surf T")
    network.run(2)
    assert len(network.oracle.deliveries) == LIAR


def test_eclipse_of_a_rendezvous_by_chosen_ids() -> None:
    """Three ids ground to be the closest to `surf` withhold its events from subscriptions kept there, and only those.

    The harm is bounded: nothing is forged, and a subscription kept under another attribute of the event gets it.
    """
    network = make_hostile_network(20, seed=6)
    kept_here, kept_elsewhere = [], []
    for index in range(20):
        network.subscribe(index, "surf T/bali T")
        own = network.nodes[index].peer.scout.trunks.own
        (kept_here if KEY in own.values() else kept_elsewhere).append(index)
    network.run(1)
    liars = [add_closest(network) for _ in range(3)]
    network.on_message = lambda source, target, message: (
        None if source in liars and isinstance(message, Notify | Subscribed) else message
    )
    network.run(1)
    publisher = kept_elsewhere[0]
    network.publish(publisher, "surf T/bali T")
    network.run(5)
    got = {delivery.peer for delivery in network.oracle.deliveries}
    assert set(kept_elsewhere) <= got
    assert network.oracle.judge(network.get_present()).unexpected == 0


def add_closest(network: Network) -> int:
    """A peer whose key was tried out until its position is the closest to `surf`."""
    closest = min(node.contact.position ^ KEY for node in network.nodes)
    while True:
        node = network.add_peer()
        if node.contact.position ^ KEY < closest:
            network.join(node.index)
            network.run(0.5)
            return node.index
        network.nodes[node.index].is_up = False

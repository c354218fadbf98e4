"""ScoutSubs on a simulated network: the known flaws of the reference, each by its number, and the paper's sentences."""

from collections import Counter

import pytest

from proofcast.errors import InvalidRequest, Unavailable
from proofcast.overlay.identity import compute_key
from proofcast.overlay.messages import Accepted, Ack, Message, Notify, Publish, Subscribe, Track
from proofcast.overlay.outputs import Abandon, Settle
from proofcast.overlay.settings import PAYLOAD_BYTES_MAX, SUBSCRIPTIONS_MAX, UNACCEPTED_MAX, Settings
from proofcast.routing.attributes import parse_attributes
from proofcast.testing.overlay.network import Network, Node, make_network

VARIANTS = [Settings(redirect=redirect, reliable=reliable) for redirect in (False, True) for reliable in (False, True)]
NEVER_S = 30.0


def find_root(network: Network, attribute: str) -> Node:
    key = compute_key(attribute)
    return min((node for node in network.nodes if node.is_up), key=lambda node: node.contact.position ^ key)


def get_counts(network: Network) -> Counter[str]:
    total: Counter[str] = Counter()
    for node in network.nodes:
        total.update(node.peer.seat.counts)
    return total


def assert_perfect(network: Network, expected: int) -> None:
    verdict = network.oracle.judge(network.get_present())
    assert (verdict.expected, verdict.missing, verdict.twice, verdict.unexpected) == (expected, (), 0, 0), verdict


def record_messages(network: Network) -> list[tuple[int, int, Message]]:
    sent: list[tuple[int, int, Message]] = []

    def note(source: int, target: int, message: Message) -> Message:
        sent.append((source, target, message))
        return message

    network.on_message = note
    return sent


# --- refusals


def test_event_without_attributes_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="`0` attributes"):
        make_network(2, 1).publish(0, "")


def test_payload_beyond_the_limit_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="bytes, more than"):
        make_network(2, 1).publish(0, "surf T", bytes(PAYLOAD_BYTES_MAX + 1))


def test_subscription_without_a_demanded_attribute_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="demands no attribute"):
        make_network(2, 1).subscribe(0, "surf N T")


def test_unsubscribing_what_was_never_subscribed_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no subscription `surf T`"):
        make_network(2, 1).unsubscribe(0, "surf T")


@pytest.mark.slow
def test_too_many_subscriptions_are_refused() -> None:
    network = make_network(1, 1)
    for number in range(SUBSCRIPTIONS_MAX):
        network.subscribe(0, f"w{number} T")
    with pytest.raises(InvalidRequest, match=f"`{SUBSCRIPTIONS_MAX}`"):
        network.subscribe(0, "one T/more T")


def test_publishing_into_the_void_is_refused_at_last() -> None:
    network = make_network(2, 1)
    network.on_message = lambda source, target, message: None
    publisher = 1 - find_root(network, "surf").index
    for _ in range(UNACCEPTED_MAX):
        network.publish(publisher, "surf T")
    with pytest.raises(Unavailable, match=f"`{UNACCEPTED_MAX}`"):
        network.publish(publisher, "surf T")


# --- the four variants


@pytest.mark.parametrize("settings", VARIANTS, ids=["BU", "BR", "RU", "RR"])
def test_every_variant_delivers_what_brute_force_expects(settings: Settings) -> None:
    network = make_network(40, 2, settings=settings)
    for index in range(30):
        network.subscribe(index, ("surf T", "surf T/bali T", "ski T/price R 0 50", "price R 40 60")[index % 4])
    network.run(2)
    for attributes in ("surf T", "surf T/bali T", "ski T/price V 45", "price V 10/surf T"):
        network.publish(35, attributes)
    network.run(2)
    assert_perfect(network, len(network.oracle.compute_expected(network.get_present())))
    assert len(network.oracle.deliveries) > 40
    assert ("repeated" in get_counts(network)) is False


# --- the reference's flaws


def test_every_filter_of_a_route_is_tried() -> None:
    """P4: an unrelated filter of four attributes beside `surf T/bali T` must not end the search."""
    network = make_network(20, 4)
    network.subscribe(3, "surf T/bali T")
    network.subscribe(3, "surf T/bali T/trip T/price R 1000 1500")
    network.subscribe(3, "aa T/bb T/cc T/surf T")
    network.run(1)
    network.publish(9, "surf T/bali T")
    network.run(1)
    assert_perfect(network, 1)


def test_event_with_two_attributes_arrives_once() -> None:
    """P5: the event visits two rendezvous, the subscription is kept at one."""
    network = make_network(30, 5)
    sent = record_messages(network)
    for index in range(20):
        network.subscribe(index, "surf T/bali T")
    network.run(1)
    network.publish(25, "surf T/bali T")
    network.run(1)
    assert_perfect(network, 20)
    arrivals = Counter(target for _, target, message in sent if isinstance(message, Notify))
    relays = {source for source, _, message in sent if isinstance(message, Notify)}
    assert all(count == 1 for target, count in arrivals.items() if target not in relays)


@pytest.mark.parametrize("seed", range(5))
def test_event_passes_through_foreign_rendezvous(seed: int) -> None:
    """P6: a peer on the way that is the rendezvous of another attribute of the event forwards it all the same."""
    network = make_network(6, seed, settings=Settings(bucket_contacts=1))
    for index in range(6):
        network.subscribe(index, ("aa T/bb T", "bb T/cc T", "aa T/cc T")[index % 3])
    network.run(2)
    for index in range(6):
        network.publish(index, "aa T/bb T/cc T")
    network.run(2)
    assert_perfect(network, 36)


def test_rendezvous_of_another_attribute_gets_the_event_once() -> None:
    """It has the event as the rendezvous of `trip`; nobody sends it again under the key of its own subscription."""
    network = make_network(20, 1, settings=Settings(redirect=False))
    root = find_root(network, "trip")
    assert root not in (find_root(network, "surf"), find_root(network, "bali"))
    network.subscribe(root.index, "surf T/bali T")
    network.run(1)
    network.subscribe(next(index for index in range(20) if index != root.index), "trip T")
    network.run(1)
    sent = record_messages(network)
    network.publish(root.index - 1, "surf T/bali T/trip T")
    network.publish(root.index - 1, "surf T/bali T")
    network.run(1)
    assert_perfect(network, 3)
    told = [message for _, target, message in sent if target == root.index and isinstance(message, Notify)]
    assert [str(message.event.attributes) for message in told] == ["bali T/surf T"]
    network.unsubscribe(next(index for index in range(20) if index != root.index), "trip T")
    network.run(1)
    network.publish(root.index - 1, "surf T/bali T/trip T")
    network.run(1)
    assert network.oracle.deliveries[-1].peer == root.index


def test_publisher_that_is_the_rendezvous_reaches_everybody() -> None:
    """P6, its second half: the rendezvous of both attributes publishes."""
    network = make_network(3, 3)
    for index in range(3):
        network.subscribe(index, "surf T")
    network.run(1)
    network.publish(find_root(network, "surf").index, "surf T/bali T")
    network.run(1)
    assert_perfect(network, 3)


def test_unsubscribe_keeps_narrower_filters() -> None:
    """P9: the withdrawn filter covered others, which appear in the very statement that withdraws it."""
    network = make_network(30, 9)
    network.subscribe(1, "price R 0 1000")
    network.subscribe(1, "price R 10 20/surf T")
    network.subscribe(2, "price R 30 40")
    network.run(1)
    network.unsubscribe(1, "price R 0 1000")
    network.run(1)
    for value in (15, 35, 500):
        network.publish(9, f"price V {value}/surf T")
    network.run(1)
    got = sorted((one.peer, network.oracle.publications[one.event_id].attributes) for one in network.oracle.deliveries)
    assert [(peer, str(attributes)) for peer, attributes in got] == [
        (1, "price V 15/surf T"),
        (2, "price V 35/surf T"),
    ]


def test_unsubscribed_everywhere_leaves_no_statement() -> None:
    network = make_network(30, 9)
    for index in range(20):
        network.subscribe(index, "surf T")
    network.run(1)
    for index in range(20):
        network.unsubscribe(index, "surf T")
    network.run(1)
    assert not any(node.peer.scout.statements.get_children(compute_key("surf")) for node in network.nodes)
    assert not any(node.peer.scout.trunks.trunks for node in network.nodes)


def test_early_ack_does_not_block() -> None:
    """P10: an acknowledgement for an event that is not here yet changes nothing and holds nothing up."""
    network = make_network(10, 10)
    for index in range(10):
        network.subscribe(index, "surf T")
    network.run(1)
    root, other = find_root(network, "surf"), network.nodes[0]
    event_id, outputs = other.peer.publish(parse_attributes("surf T"), b"", network.now)
    network.carry_out(root, root.peer.receive(other.contact, Ack(event_id, compute_key("surf"), None), network.now))
    network.carry_out(other, outputs)
    network.run(1)
    assert len(network.oracle.deliveries) == 10


def test_duplicate_event_does_not_block() -> None:
    """P10: an event that arrives again is acknowledged again, and not delivered."""
    network = make_network(10, 10)
    network.subscribe(3, "surf T")
    network.run(1)
    sent = record_messages(network)
    network.publish(5, "surf T")
    network.run(1)
    notify = next(message for _, target, message in sent if isinstance(message, Notify) and target == 3)
    sender = next(source for source, target, message in sent if message is notify)
    del sent[:]
    outputs = network.nodes[3].peer.receive(network.nodes[sender].contact, notify, network.now)
    network.carry_out(network.nodes[3], outputs)
    assert [type(message) for source, _, message in sent if source == 3] == [Ack]
    assert_perfect(network, 1)


def test_memory_is_bounded() -> None:
    """P11: what an event leaves behind is one finished passage; charges, trackers and outgoing events are gone."""
    network = make_network(20, 11)
    for index in range(10):
        network.subscribe(index, "surf T")
    network.run(1)
    for _ in range(200):
        network.publish(15, "surf T/bali T")
        network.run(0.01)
    network.run(5)
    for node in network.nodes:
        scout = node.peer.scout
        assert not scout.rendezvous.charges
        assert not scout.rendezvous.tracked
        assert not scout.publishing.outgoing
        assert len(scout.passages) <= 400


def test_resend_gives_up() -> None:
    """P11: an unreachable subscriber is tried a stated number of times."""
    settings = Settings(resend_s=1, resends_max=4, backups=0, refresh_s=10_000)
    network = make_network(8, 12, settings=settings)
    subscriber = next(node.index for node in network.nodes if node is not find_root(network, "surf"))
    network.subscribe(subscriber, "surf T")
    network.run(1)
    sent = record_messages(network)
    network.on_message = lambda source, target, message: (
        sent.append((source, target, message)) if target == subscriber else message  # type: ignore[func-returns-value]
    )
    network.publish(find_root(network, "surf").index, "surf T")
    network.run(60)
    assert sum(isinstance(message, Notify) for _, _, message in sent) == settings.resends_max
    assert get_counts(network)["undelivered"] == 1


def test_publisher_gives_up_and_says_so() -> None:
    settings = Settings(resend_s=1, resends_max=3)
    network = make_network(4, 1, settings=settings)
    publisher = next(node for node in network.nodes if node is not find_root(network, "surf"))
    network.on_message = lambda source, target, message: None
    event_id = network.publish(publisher.index, "surf T")
    network.run(10)
    assert Abandon(event_id) in publisher.outputs


# --- the paper


def test_publisher_resends_until_the_rendezvous_acknowledges() -> None:
    """ "the publisher will keep forwarding the event towards the rendezvous node until the latter receives it and
    sends an acknowledgment back" """
    network = make_network(10, 13, settings=Settings(resend_s=1))
    root = find_root(network, "surf")
    publisher = next(node for node in network.nodes if node is not root)
    lost = [Publish, Publish]

    def lose(source: int, target: int, message: Message) -> Message | None:
        return lost.pop() and None if lost and isinstance(message, Publish) else message

    network.on_message = lose
    event_id = network.publish(publisher.index, "surf T")
    network.run(1.5)
    assert Settle(event_id) not in publisher.outputs
    network.run(2)
    assert Settle(event_id) in publisher.outputs


def test_acceptance_waits_for_the_trackers() -> None:
    """ "Before acknowledging ... the rendezvous node will track the event and send tracking requests to all its
    backups" """
    network = make_network(10, 14)
    root = find_root(network, "surf")
    publisher = next(node for node in network.nodes if node is not root)
    network.on_message = lambda source, target, message: None if isinstance(message, Track) else message
    event_id = network.publish(publisher.index, "surf T")
    network.run(5)
    assert Settle(event_id) not in publisher.outputs


def test_trackers_finish_what_a_crashed_rendezvous_began() -> None:
    network = make_network(20, 15, settings=Settings(resend_s=1))
    root = find_root(network, "surf")
    others = [node.index for node in network.nodes if node is not root]
    for index in others:
        network.subscribe(index, "surf T")
    network.run(1)
    network.on_message = lambda source, target, message: None if isinstance(message, Notify) else message
    network.publish(others[0], "surf T")
    network.run(0.5)
    assert not network.oracle.deliveries
    network.crash(root.index)
    network.on_message = lambda source, target, message: message
    network.run(10)
    assert_perfect(network, len(others))


def test_event_is_resent_only_to_those_who_lack_it() -> None:
    """ "re-sending each event only to those peers who have not received it yet" """
    network = make_network(12, 16, settings=Settings(resend_s=1, redirect=False))
    for index in range(12):
        network.subscribe(index, "surf T")
    network.run(1)
    victim = next(index for index in range(12) if network.nodes[index] is not find_root(network, "surf"))
    lost: list[Message] = []

    def lose_one(source: int, target: int, message: Message) -> Message | None:
        if isinstance(message, Notify) and target == victim and not lost:
            lost.append(message)
            return None
        return message

    network.on_message = lose_one
    network.publish(0, "surf T")
    network.run(0.5)
    sent = record_messages(network)
    network.run(3)
    assert {target for _, target, message in sent if isinstance(message, Notify)} <= {victim} | set(
        find_ancestors(network, victim)
    )
    assert_perfect(network, 12)


def find_ancestors(network: Network, index: int) -> list[int]:
    ancestors, key = [], compute_key("surf")
    while (hop := network.nodes[index].peer.seat.table.find_next_hop(key)) is not None:
        index = next(node.index for node in network.nodes if node.contact == hop)
        ancestors.append(index)
    return ancestors


def test_shortcut_skips_a_peer_with_a_single_child() -> None:
    """ "it always forwards upstream the option to provide a redirect ... if there were no filters forwarded from other
    peers to that same rendezvous" """
    network = make_network(60, 17, settings=Settings(bucket_contacts=2))
    far = max(range(60), key=lambda index: len(find_ancestors(network, index)))
    assert len(find_ancestors(network, far)) >= 2
    network.subscribe(far, "surf T")
    network.run(1)
    sent = record_messages(network)
    network.publish(find_root(network, "surf").index, "surf T")
    network.run(1)
    assert [target for _, target, message in sent if isinstance(message, Notify)] == [far]


def test_shortcut_ends_when_a_second_child_appears() -> None:
    network = make_network(60, 17, settings=Settings(bucket_contacts=2))
    far = max(range(60), key=lambda index: len(find_ancestors(network, index)))
    middle = find_ancestors(network, far)[0]
    network.subscribe(far, "surf T")
    network.run(1)
    network.subscribe(middle, "surf T")
    network.run(1)
    network.publish(find_root(network, "surf").index, "surf T")
    network.run(1)
    assert_perfect(network, 2)


def test_covered_subscription_stops_on_its_way() -> None:
    network = make_network(60, 18, settings=Settings(bucket_contacts=2, redirect=False))
    far = max(range(60), key=lambda index: len(find_ancestors(network, index)))
    network.subscribe(far, "surf T")
    network.run(1)
    sent = record_messages(network)
    parent = find_ancestors(network, far)[0]
    network.subscribe(parent, "surf T/price R 1 2")
    network.run(1)
    assert not [message for _, _, message in sent if isinstance(message, Subscribe)]


def test_silence_ends_a_subscription() -> None:
    """ "resubscribe ... every period of time t. Every 2t time, each peer ... will replace its main filtertable" """
    network = make_network(20, 19, settings=Settings(refresh_s=60))
    for index in range(10):
        network.subscribe(index, "surf T")
    network.run(1)
    network.crash(3)
    network.run(5 * 60)
    held = [
        row
        for node in network.nodes
        if node.is_up
        for row in node.peer.scout.statements.get_children(compute_key("surf"))
    ]
    assert network.nodes[3].contact not in [row.interest.origin for row in held]
    network.publish(15, "surf T")
    network.run(1)
    assert_perfect(network, 9)


def test_late_joiner_gets_the_recent_past() -> None:
    network = make_network(20, 20)
    network.publish(3, "surf T", b"early")
    network.run(5)
    network.subscribe(4, "surf T")
    network.subscribe(5, "surf T", since=network.now - 60)
    network.run(5)
    assert [delivery.peer for delivery in network.oracle.deliveries] == [5]


def test_newcomer_takes_a_rendezvous_over_without_loss() -> None:
    """ "until it has completed one refreshing cycle ... it needs to redirect the events to an old rendezvous" """
    network = make_network(15, 21)
    for index in range(10):
        network.subscribe(index, "surf T")
    network.run(1)
    old = find_root(network, "surf")
    while find_root(network, "surf") is old:
        newcomer = network.add_peer()
        network.join(newcomer.index)
        network.publish(12, "surf T")
        network.run(0.02)
        network.publish(newcomer.index, "surf T")
    network.run(5)
    assert_perfect(network, 10 * len(network.oracle.publications))


def test_accepted_event_waits_in_the_log_for_a_peer_that_comes_back() -> None:
    network = make_network(15, 22, settings=Settings(resend_s=1, refresh_s=60))
    index = next(node.index for node in network.nodes if node is not find_root(network, "surf"))
    network.subscribe(index, "surf T")
    network.run(1)
    publisher = next(other for other in range(15) if other not in (index, find_root(network, "surf").index))
    network.publish(publisher, "surf T")
    network.run(1)
    network.crash(index)
    network.publish(publisher, "surf T")
    network.run(NEVER_S)
    network.restart(index)
    network.run(5)
    assert_perfect(network, 2)


@pytest.mark.parametrize("seed", range(2))
def test_forged_acceptance_does_not_silence_a_publisher(seed: int) -> None:
    network = make_network(30, seed)
    root = find_root(network, "surf")
    far = max(network.nodes, key=lambda node: node.contact.position ^ compute_key("surf"))
    publisher = next(node for node in network.nodes if node not in (root, far))
    network.on_message = lambda source, target, message: None
    event_id = network.publish(publisher.index, "surf T")
    publisher.peer.receive(far.contact, Accepted(event_id, compute_key("surf")), network.now)
    assert event_id in publisher.peer.scout.publishing.outgoing
    assert publisher.peer.seat.counts["forged"] == 1

"""The table and the lookup against brute force over all peers."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.overlay.identity import Contact, compute_key, compute_position
from proofcast.overlay.kademlia import Table
from proofcast.overlay.lookup import Lookup
from proofcast.overlay.settings import LOST_MAX, Settings
from proofcast.testing.overlay.network import make_hostile_network, make_network

SEEDS = st.integers(0, 1 << 32)


def make_contacts(seed: int, count: int) -> list[Contact]:
    dice = random.Random(seed)
    return [Contact(dice.randbytes(32), "", b"") for _ in range(count)]


def test_full_bucket_keeps_what_it_has() -> None:
    contacts = make_contacts(1, 200)
    table = Table(contacts[0].position, 4)
    kept = [contact for contact in contacts[1:] if table.add(contact)]
    assert all(contact.public_key in table for contact in kept)
    assert len(table) == len(kept) < 60


def test_own_position_never_enters() -> None:
    (own,) = make_contacts(1, 1)
    assert not Table(own.position, 4).add(own)


def test_vanished_contacts_are_remembered_within_bounds() -> None:
    contacts = make_contacts(2, 500)
    table = Table(0, 500)
    for contact in contacts:
        table.add(contact)
        table.remove(contact.public_key)
    assert list(table.lost) == [contact.public_key for contact in contacts[-LOST_MAX:]]


@given(SEEDS, st.integers(1, 60), st.integers(1, 30))
def test_closest_is_what_sorting_says(seed: int, count: int, wanted: int) -> None:
    contacts = make_contacts(seed, count)
    table = Table(compute_position(b"me"), 1000)
    for contact in contacts:
        table.add(contact)
    target = compute_key(str(seed))
    ordered = sorted(contacts, key=lambda contact: contact.position ^ target)
    assert table.find_closest(target, wanted) == ordered[:wanted]


@given(SEEDS, st.integers(1, 60), st.integers(1, 8))
def test_next_hop_is_the_closest_known_or_nobody(seed: int, count: int, size: int) -> None:
    table = Table(compute_position(b"me"), size)
    for contact in make_contacts(seed, count):
        table.add(contact)
    target = compute_key(str(seed))
    best = min(table.contacts.values(), key=lambda contact: contact.position ^ target)
    is_closer = best.position ^ target < table.position ^ target
    assert table.find_next_hop(target) == (best if is_closer else None)


def test_rendezvous_key_space_is_one() -> None:
    """P8: peers and attributes are hashed once, and every peer's route ends at the same, truly closest peer."""
    network = make_network(200, seed=8, settings=Settings(bucket_contacts=4))
    for attribute in ("surf", "bali", "price", "ipfs"):
        key = compute_key(attribute)
        closest = min(network.nodes, key=lambda node: node.contact.position ^ key)
        for node in network.nodes:
            while (hop := node.peer.seat.table.find_next_hop(key)) is not None:
                node = next(other for other in network.nodes if other.contact == hop)
            assert node is closest


def test_lookup_asks_nobody_on_two_paths() -> None:
    contacts = make_contacts(3, 40)
    lookup = Lookup(0, contacts[:6], paths=2, parallel=3, size=8)
    asked: list[bytes] = []
    while batch := lookup.ask():
        asked += [contact.public_key for contact in batch]
        for contact in batch:
            lookup.answer(contact.public_key, contacts)
    assert len(asked) == len(set(asked))
    assert lookup.get_result() == sorted(contacts, key=lambda contact: contact.position)[:8]


def test_lookup_finds_the_closest_although_a_path_lies() -> None:
    """S/Kademlia: liars that name only each other lead their own path astray, not the other."""
    honest = make_contacts(4, 60)
    target = compute_key("surf")
    liars = make_contacts(5, 10)
    lookup = Lookup(target, [liars[0], honest[0], liars[1], honest[1]], paths=2, parallel=2, size=8)
    while batch := lookup.ask():
        for contact in batch:
            lookup.answer(contact.public_key, liars if contact in liars else honest)
    truly = sorted(honest, key=lambda contact: contact.position ^ target)
    found = [contact for contact in lookup.get_result() if contact not in liars]
    assert len(found) >= 4
    assert found == truly[: len(found)]


def test_failed_peers_do_not_stop_a_lookup() -> None:
    contacts = make_contacts(6, 20)
    lookup = Lookup(0, contacts, paths=2, parallel=3, size=20)
    while batch := lookup.ask():
        for contact in batch:
            lookup.fail(contact.public_key)
    assert lookup.is_done
    assert lookup.get_result() == []


@pytest.mark.parametrize("seed", range(3))
def test_newcomers_find_their_neighbours(seed: int) -> None:
    """Joining by real lookups from a single peer, everybody ends with the nearest neighbours in the table."""
    network = make_network(5, seed, settings=Settings(bucket_contacts=8))
    for _ in range(25):
        network.join(network.add_peer().index)
        network.run(1)
    for node in network.nodes:
        others = [other for other in network.nodes if other is not node]
        nearest = sorted(others, key=lambda other: other.contact.position ^ node.contact.position)[:2]
        assert all(other.contact.public_key in node.peer.seat.table for other in nearest), f"seed {seed}"


def test_contact_with_a_false_signature_is_not_asked() -> None:
    network = make_hostile_network(6, seed=1)
    asker, liar = network.nodes[0], network.nodes[1]
    forged = Contact(network.nodes[2].contact.public_key, "/memory/1", liar.contact.signature)
    found: list[Contact] = []
    asker.peer.finding.find(9, lambda contacts, now: found.extend(contacts), network.now)
    network.on_message = lambda source, target, message: (
        type(message)(message.target, (forged,)) if hasattr(message, "contacts") else message  # type: ignore[call-arg]
    )
    network.carry_out(asker, asker.peer.tick(network.now))
    network.run(10)
    assert forged not in found

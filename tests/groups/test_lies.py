"""Every lie of a server and of a client, in whole systems by seed: detected, and blamed on the right one."""

import pytest

from proofcast.groups.outputs import Culprit
from proofcast.groups.proof import Lie, verify_proof
from proofcast.testing.groups.clients import ClientLie
from proofcast.testing.groups.lies import UNPROVABLE, ServerLie
from proofcast.testing.groups.world import World

EPOCHS_MAX = 80
PROVABLE = [lie for lie in ServerLie if lie not in UNPROVABLE]


def run_lie(seed: int, lie: ServerLie) -> World:
    world = World(seed, size=3 + seed % 2, lie=lie)
    world.run_until_accused(EPOCHS_MAX)
    assert world.server.has_lied, f"seed {seed}: no occasion"
    return world


def check_proved(seed: int, lie: ServerLie) -> Lie:
    """The server is convicted by somebody, and nobody else is accused."""
    world = run_lie(seed, lie)
    assert {one.culprit for one in world.accusations} == {Culprit.SERVER}, f"seed {seed}"
    (proof, *_) = [one.proof for one in world.accusations if one.proof] or [None]
    assert proof is not None, f"seed {seed}: detected but not proved"
    return verify_proof(proof, world.server.server_key).lie


def check_blamed(seed: int, lie: ClientLie) -> Culprit:
    """The liar is blamed, and nobody else; a proof there is never."""
    world = World(seed, size=3 + seed % 2, client_lie=lie)
    world.run_until_accused(EPOCHS_MAX)
    assert {one.device for one in world.accusations} == {world.devices[-1].id}, f"seed {seed}"
    assert [one.proof for one in world.accusations if one.proof] == [], f"seed {seed}"
    return world.accusations[0].culprit


# --- the server lies


@pytest.mark.slow
@pytest.mark.parametrize("lie", PROVABLE)
def test_lie_of_the_server_is_proved_by_many_seeds(lie: ServerLie) -> None:
    for seed in range(20):
        check_proved(seed, lie)


@pytest.mark.parametrize("lie", sorted(UNPROVABLE, key=lambda lie: lie.name))
def test_bad_attestation_becomes_evidence(lie: ServerLie) -> None:
    """Flaw S5 of the reference: bad attestations made the client panic. Nothing of such a packet is delivered."""
    world = run_lie(1, lie)
    (accusation, *_) = world.accusations
    assert (accusation.culprit, accusation.proof) == (Culprit.SERVER, None)
    victim = world.devices[0]
    assert [name for name in victim.disk if name.startswith("evidence/")]
    refused = {packet.attestation.leaf.next for packet in world.server.inboxes[victim.id]}
    assert refused, "a packet that was refused is not deleted"


@pytest.mark.parametrize(
    ("lie", "proved"),
    [
        (ServerLie.DROP, {Lie.MISSING}),
        (ServerLie.CHANGE_COMMON, {Lie.CONFLICT}),
        (ServerLie.CHANGE_CIPHERTEXT, {Lie.CONFLICT}),
        (ServerLie.SPLIT_RECIPIENTS, {Lie.CONFLICT}),
        (ServerLie.TEAR_SERIES, {Lie.SPLIT}),
        (ServerLie.REPLAY, {Lie.INJECTED}),
        (ServerLie.OVERLAP, {Lie.OVERLAP}),
        (ServerLie.TWO_CHECKPOINTS, {Lie.FORK}),
        (ServerLie.COLLUDE, {Lie.CONFLICT}),
        (ServerLie.REORDER, {Lie.SPLIT, Lie.CONFLICT, Lie.MISSING}),
        (ServerLie.CHANGE_SEQUENCE, {Lie.SPLIT, Lie.MISSING}),
        (ServerLie.FORK, {Lie.FORK, Lie.MISSING}),
    ],
)
def test_proof_says_which_lie_it_was(lie: ServerLie, proved: set[Lie]) -> None:
    """A message that moved may leave its series, or stand where another has been, or nowhere."""
    assert check_proved(2, lie) in proved


def test_two_honest_clients_are_enough() -> None:
    """V-B: "regardless of how many clients the server colludes with, only two honest clients with divergent histories
    are required to detect any misbehavior"."""
    world = World(5, size=5, liars=3, lie=ServerLie.COLLUDE)
    world.run_until_accused(EPOCHS_MAX)
    assert len(world.honest) == 2
    assert {one.culprit for one in world.accusations if one.proof} == {Culprit.SERVER}


def test_nothing_is_delivered_after_a_lie_until_the_application_decides() -> None:
    world = run_lie(3, ServerLie.CHANGE_COMMON)
    (accuser, *_) = [device for device in world.honest if device.accusations]
    before = len(accuser.delivered)
    world.run(3)
    assert len(accuser.delivered) == before


# --- a client lies


@pytest.mark.parametrize("lie", ClientLie)
def test_lying_client_is_blamed(lie: ClientLie) -> None:
    assert check_blamed(1, lie) is (Culprit.SILENT_PEER if lie is ClientLie.SILENT else Culprit.PEER)


@pytest.mark.slow
@pytest.mark.parametrize("lie", ClientLie)
def test_lying_client_is_blamed_by_many_seeds(lie: ClientLie) -> None:
    for seed in range(20):
        check_blamed(seed, lie)


# --- nobody lies


@pytest.mark.parametrize("seed", range(2))
def test_nobody_is_accused_where_nobody_lies(seed: int) -> None:
    world = World(seed, size=3 + seed % 3, trouble=0.2)
    world.run(20)
    world.rest()
    assert world.accusations == [], f"seed {seed}"
    check_deliveries(world)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_nobody_is_accused_in_long_runs_with_crashes(seed: int) -> None:
    world = World(seed, size=3 + seed % 3, trouble=0.3)
    world.run(40)
    world.rest()
    assert world.accusations == [], f"seed {seed}"
    check_deliveries(world)


def check_deliveries(world: World) -> None:
    """In global order, exactly once, and everything that was addressed to a device."""
    places = {one.sequence: one.message.recipients for one in world.server.log}
    operations = {one.operation: one.sequence for device in world.devices for one in device.delivered}
    for device in world.devices:
        got = [one.sequence for one in device.delivered]
        assert got == sorted(set(got)), f"seed {world.seed}"
        due = [sequence for sequence in operations.values() if device.id in places[sequence]]
        assert sorted(due) == got, f"seed {world.seed}"


def test_one_seed_gives_one_trace() -> None:
    runs = [World(9, trouble=0.2) for _ in range(2)]
    for world in runs:
        world.run(12)
    assert runs[0].trace == runs[1].trace
    assert len(runs[0].trace) > 50

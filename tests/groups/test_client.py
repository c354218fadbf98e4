"""The core of a device, driven by hand against a server in memory."""

from random import Random

import pytest
from nacl.signing import SigningKey

from proofcast.errors import InvalidRequest, Unavailable
from proofcast.groups import outputs
from proofcast.groups.client import Recovery, Settings
from proofcast.groups.identity import KeyBundle
from proofcast.groups.outbox import Draft
from proofcast.groups.outputs import Culprit
from proofcast.groups.packet import InboxPacket
from proofcast.groups.proof import Kind
from proofcast.groups.records import make_backup
from proofcast.groups.series import Form, parse_series
from proofcast.testing.groups.clients import Device
from proofcast.testing.groups.lies import ServerLie
from proofcast.testing.groups.world import SETTINGS, World


def make_world(lie: ServerLie | None = None, settings: Settings = SETTINGS, size: int = 2) -> World:
    return World(1, size=size, lie=lie, settings=settings)


def say(world: World, device: Device, words: str, *to: Device) -> None:
    """Send, close the epoch, and let everybody read."""
    device.send((Draft(words.encode(), tuple(one.id for one in to)),), world.now)
    turn(world)


def turn(world: World) -> None:
    world.server.close()
    world.now += 1.0
    for device in world.devices:
        device.read(world.now)


def get_words(device: Device) -> list[str]:
    return [one.operation.decode() for one in device.delivered]


# --- refusals


def test_unvalidated_message_is_not_delivered() -> None:
    """Flaw S4 of the reference: a failed validation was logged and the message delivered all the same."""
    world = make_world()
    a, b = world.devices
    say(world, a, "one", b)
    b.client.histories.get(a.id).digests[-1] = bytes(32)
    turn(world)
    say(world, a, "two", b)
    assert get_words(b) == ["one"]
    assert [line for line in b.trace if "Suspect" in line]


def test_drop_at_the_end_of_a_history_is_detected() -> None:
    """Flaw S3 of the reference, in a system: the dropped message was the last one of the victim's history."""
    world = make_world(ServerLie.DROP)
    b, a = world.devices
    say(world, a, "one", b)
    assert world.server.has_lied
    assert get_words(b) == []
    say(world, a, "two", b)
    for _ in range(3):
        turn(world)
    assert get_words(b) == []
    assert [one.culprit for one in world.accusations if one.proof][:1] == [Culprit.SERVER]


def test_keys_of_a_man_in_the_middle_are_refused() -> None:
    world = make_world()
    a, b = world.devices
    mallory = SigningKey(b"m" * 32)
    true = world.server.keys[b.id][0]
    forged = KeyBundle(b.id, true.curve_key, False, bytes(32), mallory.sign(true.get_signed_bytes()).signature)
    world.server.keys[b.id] = [forged]
    a.send((Draft(b"secret", (b.id,)),), world.now)
    assert world.server.queue == []
    (accusation,) = a.accusations
    assert "not signed by" in accusation.sentence


def test_operation_for_a_device_without_keys_is_given_back() -> None:
    world = make_world(size=3)
    a, b, c = world.devices
    del world.server.keys[b.id], world.server.fallbacks[b.id]
    a.send((Draft(b"for b", (b.id,)),), world.now)
    a.send((Draft(b"for c", (c.id,)),), world.now)
    turn(world)
    assert get_words(a) == get_words(c) == ["for c"]
    assert [line for line in a.trace if "NoKeys" in line] == ["a NoKeys"]


def test_question_is_asked_as_soon_as_there_are_keys() -> None:
    """It is not given back: nobody would ask again, and an honest peer would be called silent."""
    world = make_world(ServerLie.CHANGE_CIPHERTEXT)
    victim, other = world.devices
    keys = world.server.keys.pop(other.id), world.server.fallbacks.pop(other.id)
    say(world, other, "one", victim)
    world.run(2)
    assert world.accusations == []
    world.server.keys[other.id], world.server.fallbacks[other.id] = keys
    world.run(3)
    assert [one.culprit for one in victim.accusations] == [Culprit.SERVER]


def test_draft_that_cannot_be_sent_is_refused() -> None:
    world = make_world()
    a, b = world.devices
    for drafts in ((), (Draft(b"x", (b"short",)),), (Draft(bytes(2**20), (b.id,)),)):
        with pytest.raises(InvalidRequest):
            a.client.send(drafts, world.now)


def test_nothing_is_sent_while_an_accusation_is_open() -> None:
    world = make_world(ServerLie.CHANGE_COMMON)
    victim, other = world.devices
    say(world, other, "one", victim)
    with pytest.raises(Unavailable, match="accusation is open"):
        victim.client.send((Draft(b"x", (other.id,)),), world.now)


def test_silent_peer_is_called_so_in_time() -> None:
    world = make_world(ServerLie.CHANGE_CIPHERTEXT)
    victim, other = world.devices
    other.send((Draft(b"one", (victim.id,)),), world.now)
    world.server.close()
    victim.read(world.now)
    deadline = victim.client.deadline()
    assert deadline is not None
    victim.perform(victim.client.tick(deadline - 1), deadline - 1)
    assert victim.accusations == []
    victim.perform(victim.client.tick(deadline), deadline)
    assert [(one.culprit, one.device) for one in victim.accusations] == [(Culprit.SILENT_PEER, other.id)]


# --- the ordinary way


def test_what_changes_is_stored_before_anything_leaves() -> None:
    """No key is used twice after a crash: sessions, counter and series are durable before the ciphertext is out."""
    world = make_world()
    a, b = world.devices
    say(world, a, "one", b)
    for record, counter in (("steps", 2), ("session", 3)):
        first, *rest = a.client.send((Draft(b"again", (b.id,)),), world.now)
        assert isinstance(first, outputs.Store)
        assert {f"{record}/{b.id.hex()}", "client", f"outgoing/{counter}"} <= first.changes.keys()
        assert [type(one) for one in rest] == [outputs.SendSeries]
        say(world, b, "an answer", a)


def test_same_bytes_are_sent_again_after_a_crash() -> None:
    world = make_world()
    a, b = world.devices
    say(world, a, "one", b)
    store, sending = a.client.send((Draft(b"two", (b.id,)),), world.now)
    assert isinstance(store, outputs.Store)
    assert isinstance(sending, outputs.SendSeries)
    a.store(store)
    a.start()
    again = [
        one for one in a.client.receive(outputs.ServerCounter(1), world.now) if isinstance(one, outputs.SendSeries)
    ]
    assert again == [sending]


def test_everybody_reads_in_one_order_and_the_sender_too() -> None:
    world = make_world(size=3)
    a, b, c = world.devices
    a.send((Draft(b"one", (b.id, c.id)), Draft(b"two", (b.id,))), world.now)
    c.send((Draft(b"three", (a.id, b.id)),), world.now)
    turn(world)
    turn(world)
    assert get_words(a) == get_words(b) == ["one", "two", "three"]
    assert get_words(c) == ["one", "three"]


def test_ack_ends_the_long_form_of_first_contact() -> None:
    world = make_world()
    a, b = world.devices
    forms = []
    for words in ("one", "two"):
        a.send((Draft(words.encode(), (b.id,)),), world.now)
        forms += [one.form for one in world.server.queue[0].messages[0].envelopes if one.recipient == b.id]
        turn(world)
        turn(world)
    assert forms == [Form.FIRST, Form.NORMAL]
    assert get_words(a) == get_words(b) == ["one", "two"]


def test_length_shows_only_the_form() -> None:
    world = make_world(settings=Settings(validate_every=2))
    a, b = world.devices
    lengths: dict[Form, set[int]] = {}
    for number in range(6):
        a.send((Draft(b"x" * number, (b.id,)),), world.now)
        for envelope in world.server.queue[0].messages[0].envelopes:
            lengths.setdefault(envelope.form, set()).add(len(envelope.ciphertext))
        turn(world)
        turn(world)
    assert lengths == {Form.FIRST: {328}, Form.NORMAL: {127}, Form.SELF: {107}}


def test_messages_that_cross_are_no_accusation() -> None:
    """The receiver is ahead of the payload: comparison is at the index."""
    world = make_world()
    a, b = world.devices
    say(world, a, "hello", b)
    for number in range(5):
        a.send((Draft(f"a{number}".encode(), (b.id,)),), world.now)
        b.send((Draft(f"b{number}".encode(), (a.id,)),), world.now)
        turn(world)
    assert world.accusations == []
    assert get_words(a) == get_words(b)


def test_how_often_payloads_go_out_is_configurable() -> None:
    world = make_world(settings=Settings(validate_every=3, keys_full=8, keys_low=2))
    a, b = world.devices
    say(world, b, "hello", a)
    turn(world)
    kept = []
    for number in range(6):
        say(world, a, str(number), b)
        kept.append(len(b.client.histories.get(a.id).digests))
    assert min(kept) < max(kept) <= 6
    assert world.accusations == []


def test_validated_statements_are_forgotten() -> None:
    world = make_world()
    a, b = world.devices
    for number in range(12):
        say(world, (a, b)[number % 2], str(number), (b, a)[number % 2])
    assert len(a.client.attested.statements) <= 8
    assert len([name for name in a.disk if name.startswith("statement/")]) == len(a.client.attested.statements)


def test_silent_peer_can_be_paused_so_that_trimming_goes_on() -> None:
    world = make_world(size=3)
    a, b, silent = world.devices
    world.devices.remove(silent)
    for number in range(10):
        speaker, other = (a, b) if number % 2 else (b, a)
        say(world, speaker, str(number), other, silent)
    assert len(a.client.histories.get(silent.id).digests) == 11
    before = len(a.client.attested.statements)
    a.perform(a.client.pause(silent.id), world.now)
    assert len(a.client.histories.get(silent.id).digests) == 1
    assert len(a.client.attested.statements) < before
    world.devices.append(silent)
    for _ in range(2):
        turn(world)
    say(world, silent, "back", a, b)
    say(world, silent, "again", a, b)
    say(world, silent, "and again", a, b)
    assert not a.client.histories.get(silent.id).is_paused
    assert world.accusations == []
    assert get_words(a)[-3:] == ["back", "again", "and again"]


def test_removed_member_gets_no_later_key() -> None:
    """Each message has a key of its own, which only its recipients get."""
    world = make_world(size=3)
    a, b, removed = world.devices
    say(world, a, "for all", b, removed)
    turn(world)
    a.send((Draft(b"without you", (b.id,)),), world.now)
    message = world.server.queue[0].messages[0]
    assert removed.id not in message.recipients
    turn(world)
    assert get_words(removed) == ["for all"]
    for envelope in message.envelopes:
        with pytest.raises(Exception, match="does not open"):
            removed.client.sessions.decrypt(a.id, envelope.form, envelope.ciphertext)


def test_repeated_packets_are_taken_once() -> None:
    world = make_world()
    a, b = world.devices
    say(world, a, "one", b)
    for packet in world.server.history[b.id]:
        b.perform(b.client.receive(packet, world.now), world.now)
    assert get_words(b) == ["one"]
    assert b.accusations == []


def test_keys_are_topped_up_and_the_fallback_key_is_rotated() -> None:
    world = make_world()
    a, _ = world.devices
    (_, publish) = a.client.receive(outputs.KeysLeft(1), world.now)
    assert isinstance(publish, outputs.PublishKeys)
    assert [bundle.is_fallback for bundle in publish.bundles] == [False] * 7
    assert a.client.receive(outputs.KeysLeft(8), world.now) == []
    deadline = a.client.deadline()
    assert deadline is not None
    (_, publish) = a.client.tick(deadline)
    assert isinstance(publish, outputs.PublishKeys)
    assert [bundle.is_fallback for bundle in publish.bundles] == [True]


def test_broken_session_is_repaired_and_the_evidence_kept() -> None:
    """One ciphertext was spoiled; the next message opens, in a session made anew, and the server is convicted."""
    world = make_world(ServerLie.CHANGE_CIPHERTEXT)
    victim, other = world.devices
    say(world, other, "one", victim)
    for _ in range(4):
        turn(world)
    (accusation,) = victim.accusations
    assert accusation.proof
    assert f"proof/{accusation.sequence}" in victim.disk
    victim.recover(Recovery.ROLL_BACK, world.now)
    say(world, other, "two", victim)
    assert get_words(victim) == ["two"]


# --- after an accusation


@pytest.mark.parametrize("recovery", Recovery)
def test_application_decides_how_to_go_on(recovery: Recovery) -> None:
    world = make_world(ServerLie.CHANGE_CIPHERTEXT, size=3)
    victim, b, c = world.devices
    say(world, b, "spoiled", victim)
    say(world, c, "held", victim)
    assert get_words(victim) == []
    for _ in range(3):
        turn(world)
    assert victim.accusations
    victim.start()
    victim.recover(recovery, world.now)
    wanted = {Recovery.ROLL_BACK: "RolledBack", Recovery.LOAD_SNAPSHOT: "SnapshotWanted"}[recovery]
    assert [line for line in victim.trace if wanted in line]
    assert get_words(victim) == ["held"]
    say(world, victim, "going on", b, c)
    say(world, b, "and on", victim, c)
    assert get_words(victim) == ["held", "going on", "and on"]
    assert [one for one in (*b.accusations, *c.accusations) if one.culprit is not Culprit.SERVER] == []


# --- backups


@pytest.mark.parametrize("is_copy", [False, True])
def test_restored_backup_begins_a_new_generation(is_copy: bool) -> None:
    """It neither uses a key twice nor accuses anybody of what it lost."""
    world = make_world(size=3)
    a, b, c = world.devices
    say(world, a, "one", b, c)
    backup = dict(a.disk) if is_copy else make_backup(a.disk)
    say(world, a, "two", b, c)
    say(world, b, "three", a, c)
    a.restore(backup, world.now)
    assert [line for line in a.trace if "Restored" in line]
    for _ in range(3):
        turn(world)
    say(world, b, "four", a, c)
    say(world, a, "five", b, c)
    say(world, c, "six", a, b)
    assert world.accusations == []
    assert get_words(a)[-3:] == get_words(b)[-3:] == get_words(c)[-3:] == ["four", "five", "six"]
    generations = [a.client.histories.get(one.id).generations for one in (b, c)]
    assert generations == [(3, 0), (3, 0)]


def test_backup_has_no_ratchets() -> None:
    world = make_world()
    a, b = world.devices
    say(world, a, "one", b)
    kinds = {name.split("/")[0] for name in make_backup(a.disk)}
    assert kinds == {"client", "entries", "transcript", "backup"}


def test_restored_device_with_nothing_sent_since_is_found_out_by_its_inbox() -> None:
    world = make_world()
    a, b = world.devices
    say(world, a, "one", b)
    turn(world)
    copy = dict(b.disk)
    say(world, a, "two", b)
    b.restore(copy, world.now)
    assert [line for line in b.trace if "Restored" in line]
    for _ in range(3):
        turn(world)
    say(world, a, "three", b)
    assert world.accusations == []
    assert get_words(b)[-1] == "three"


def test_server_that_forgot_a_series_is_accused() -> None:
    world = make_world()
    a, b = world.devices
    say(world, a, "one", b)
    accusations = [
        one for one in a.client.receive(outputs.ServerCounter(0), world.now) if isinstance(one, outputs.Accuse)
    ]
    assert [one.culprit for one in accusations] == [Culprit.SERVER]


def test_demanded_leaf_may_be_empty() -> None:
    world = make_world()
    a, b = world.devices
    say(world, a, "one", b)
    turn(world)
    world.server.demands.add(b.id)
    turn(world)
    assert b.client.attested.ends == dict.fromkeys(Kind, (world.server.epoch + 1) << 20)


def test_records_make_the_same_device_again() -> None:
    world = World(4, trouble=0.0)
    world.run(8)
    for device in world.devices:
        before = device.client
        device.start()
        assert device.client.histories.transcripts == before.histories.transcripts
        assert device.client.attested == before.attested
        assert device.client.outbox.outgoing == before.outbox.outgoing
        assert device.client.make_meta() == before.make_meta()


def test_series_on_the_wire_is_what_was_drafted() -> None:
    world = make_world()
    a, b = world.devices
    a.send((Draft(b"one", (b.id,)),), world.now)
    series = world.server.queue[0]
    assert parse_series(series.encode()) == series
    assert series.messages[0].recipients == tuple(sorted((a.id, b.id)))
    world.server.close()
    packets = [packet for packet in world.server.history[b.id] if isinstance(packet, InboxPacket)]
    assert Random(0).choice(packets).deliveries[0].sender == a.id

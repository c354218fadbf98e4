"""Refusals of the verifier: whatever clients make of what an honest server signed, it convicts nobody."""

import ast
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from nacl.signing import SigningKey

from proofcast.groups import proof
from proofcast.groups.evidence import encode_proof, find_proof
from proofcast.groups.packet import InboxPacket
from proofcast.groups.proof import Exhibit, Kind, Lie, Proof, Refused, Row, parse_proof, verify_proof
from proofcast.groups.series import Envelope, Form, Message, Series, compute_blind, get_salt
from proofcast.testing.groups.framing import Conspiracy, iterate_framings, recut_rows
from proofcast.testing.groups.lies import ServerLie
from proofcast.testing.groups.server import LyingServer
from proofcast.testing.groups.world import World

CLIENTS = [letter.encode() * 32 for letter in "abc"]
A, B, C = CLIENTS


def make_server(lie: ServerLie | None = None, victim: bytes | None = None) -> LyingServer:
    return LyingServer(SigningKey(b"k" * 32), Random(1), lie, victim)


def make_series(sender: bytes, counter: int, *lists: list[bytes]) -> Series:
    messages = (
        Message(
            sender,
            b"\x01" + bytes([counter, place]) * 20,
            tuple(Envelope(one, Form.NORMAL, one[:1] + bytes([counter])) for one in recipients),
        )
        for place, recipients in enumerate(lists)
    )
    return Series(sender, counter, tuple(messages))


def get_exhibits(server: LyingServer, series: list[Series]) -> dict[tuple[Kind, bytes, int], Exhibit]:
    """What each client can show, by kind, client and epoch."""
    plot = Conspiracy.__new__(Conspiracy)
    plot.server, plot.clients, plot.sent, plot.blinds = server, CLIENTS, series, {}
    packets = [packet for packets in server.history.values() for packet in packets]
    exhibits = map(plot.make_exhibit, packets)
    return {(Kind(one.leaf.kind), one.leaf.client, one.checkpoint.epoch): one for one in exhibits}


@pytest.fixture(scope="module")
def proofs() -> dict[ServerLie, tuple[bytes, bytes]]:
    """One proof of each provable lie, with the key of the server that it convicts."""
    found = {}
    lies = ServerLie.DROP, ServerLie.CHANGE_COMMON, ServerLie.OVERLAP, ServerLie.TWO_CHECKPOINTS
    for seed, lie in enumerate(lies):
        world = World(seed, lie=lie)
        world.run_until_accused()
        (accusation, *_) = [one for one in world.accusations if one.proof]
        assert accusation.proof
        found[lie] = accusation.proof, world.server.server_key
    return found


# --- a proof that was tampered with


def test_every_flipped_byte_is_refused(proofs: dict[ServerLie, tuple[bytes, bytes]]) -> None:
    for data, server_key in proofs.values():
        for place in range(0, len(data), 29):
            flipped = data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :]
            with pytest.raises(Refused):
                verify_proof(flipped, server_key)


def test_flipped_byte_with_a_new_checksum_is_refused(proofs: dict[ServerLie, tuple[bytes, bytes]]) -> None:
    """The checksum is for accidents; against liars every byte that matters is signed."""
    for data, server_key in proofs.values():
        for place in range(9, len(data) - 32, 23):
            body = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 : -32]
            with pytest.raises(Refused):
                verify_proof(body + proof.sha256(body).digest(), server_key)


@pytest.mark.parametrize("cut", [0, 8, 40, 200, -1, -33])
def test_cut_file_is_refused(proofs: dict[ServerLie, tuple[bytes, bytes]], cut: int) -> None:
    for data, server_key in proofs.values():
        with pytest.raises(Refused):
            verify_proof(data[:cut], server_key)
        with pytest.raises(Refused):
            verify_proof(data + bytes(1), server_key)


def test_proof_against_another_server_is_refused(proofs: dict[ServerLie, tuple[bytes, bytes]]) -> None:
    data, _ = proofs[ServerLie.DROP]
    with pytest.raises(Refused, match="another server key"):
        verify_proof(data, bytes(SigningKey(b"o" * 32).verify_key))


def test_mixed_proofs_are_refused(proofs: dict[ServerLie, tuple[bytes, bytes]]) -> None:
    """An exhibit of one proof in the place of another's, or both in the wrong order."""
    (first, key), (second, _) = proofs[ServerLie.DROP], proofs[ServerLie.CHANGE_COMMON]
    one, other = parse_proof(first).exhibits, parse_proof(second).exhibits
    for exhibits in ((one[0], other[0]), (other[1], one[1]), (one[1], one[0]), (one[0], one[0]), one[:1]):
        with pytest.raises(Refused):
            verify_proof(encode_proof(replace(parse_proof(first), exhibits=exhibits)), key)


def test_proof_holds_only_as_the_lie_it_is(proofs: dict[ServerLie, tuple[bytes, bytes]]) -> None:
    data, key = proofs[ServerLie.CHANGE_COMMON]
    true = parse_proof(data)
    believed = set()
    for lie in Lie:
        with suppress(Refused):
            believed.add(verify_proof(encode_proof(replace(true, lie=lie)), key).lie)
    assert believed == {Lie.CONFLICT}


# --- framing an honest server


def test_honest_server_cannot_be_framed_by_recutting() -> None:
    """Flaw S1 of the reference: two messages with 2 + 2 recipients and the cut 3 + 1 had one digest."""
    server, series = make_server(), [make_series(A, 1, [A, B], [A, C])]
    server.submit(series[0].encode())
    server.close()
    exhibit = get_exhibits(server, series)[Kind.SENT, A, 1]
    recut = recut_rows(Conspiracy(1), exhibit)
    assert recut != exhibit
    for forged in (recut, replace(recut, leaf=exhibit.leaf, rows=exhibit.rows)):
        with pytest.raises(Refused):
            proof.verify_exhibit(forged)


def test_sent_leaf_does_not_pass_as_nothing_received() -> None:
    """A client that sent nothing has an empty SENT leaf; it says nothing about what it received."""
    server, series = make_server(), [make_series(A, 1, [A, B])]
    server.demands = {B}
    server.submit(series[0].encode())
    server.close()
    exhibits = get_exhibits(server, series)
    present, empty = exhibits[Kind.SENT, A, 1], exhibits[Kind.SENT, B, 1]
    assert empty.rows == ()
    blind = compute_blind(get_salt(series[0].messages[0].common), B)
    forged = replace(empty, leaf=replace(empty.leaf, kind=int(Kind.RECEIVED)))
    with pytest.raises(Refused, match="not about what its client received"):
        verify_proof(encode_proof(Proof(Lie.MISSING, (), (present, empty), blind)), server.server_key)
    with pytest.raises(Refused, match="not in the checkpoint"):
        verify_proof(encode_proof(Proof(Lie.MISSING, (), (present, forged), blind)), server.server_key)


def test_same_series_again_is_another_series() -> None:
    """A client that sends the same bytes twice cannot show one series at two places."""
    server = make_server()
    first = make_series(A, 1, [A, B], [A, B])
    series = [first, Series(A, 2, first.messages)]
    for one in series:
        server.submit(one.encode())
    server.close()
    exhibit = get_exhibits(server, series)[Kind.SENT, A, 1]
    for one in exhibit.shown:
        for other in exhibit.shown:
            pair = replace(exhibit, shown=(one,)), replace(exhibit, shown=(other,))
            assert find_proof(server.server_key, pair) is None


def test_leaf_of_another_epoch_is_refused() -> None:
    server, series = make_server(), [make_series(A, 1, [A, B]), make_series(A, 2, [A, B])]
    for one in series:
        server.submit(one.encode())
        server.close()
    exhibits = get_exhibits(server, series)
    early, late = exhibits[Kind.RECEIVED, B, 1], exhibits[Kind.RECEIVED, B, 2]
    forged = replace(early, checkpoint=late.checkpoint, signature=late.signature)
    with pytest.raises(Refused, match="not in the checkpoint"):
        verify_proof(encode_proof(Proof(Lie.OVERLAP, (), (forged, late), b"")), server.server_key)


def test_blind_of_one_name_opens_no_other() -> None:
    """Who is not named cannot be shown as named, with any blind that anybody has."""
    server, series = make_server(), [make_series(A, 1, [A, B])]
    server.demands = {C}
    server.submit(series[0].encode())
    server.close()
    exhibits = get_exhibits(server, series)
    blinds = [compute_blind(get_salt(series[0].messages[0].common), one) for one in CLIENTS]
    pair = exhibits[Kind.SENT, A, 1], exhibits[Kind.RECEIVED, C, 1]
    assert find_proof(server.server_key, pair, blinds) is None


def test_names_are_hidden_from_whoever_knows_the_clients() -> None:
    """A row shows the names whose blinds are given; H(recipient, sequence) of the paper could be guessed."""
    row = make_series(A, 1, [A, B]).make_rows(1 << 20)[0]
    guesses = [proof.sha256(one + row.sequence.to_bytes(8, "big")).digest() for one in CLIENTS]
    guesses += [proof.compute_name(bytes(32), one) for one in CLIENTS]
    assert not {name for name, _ in row.recipients} & set(guesses)


@pytest.mark.parametrize("seed", range(6))
def test_conspirators_cannot_frame_an_honest_server(seed: int) -> None:
    assert list(iterate_framings(seed, attempts=20)) == [], f"seed {seed}"


def test_conspirators_would_find_a_rule_that_is_too_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the kinds of leaves, every client that both sends and receives could frame the server."""

    def judge_overlap_of_any_kind(shown: Proof) -> str:
        first, second = (replace(one, leaf=replace(one.leaf, kind=0)) for one in proof.get_pair(shown))
        return proof.judge_overlap(replace(shown, exhibits=(first, second)))

    monkeypatch.setitem(proof.RULES, Lie.OVERLAP, judge_overlap_of_any_kind)
    assert any(list(iterate_framings(seed, attempts=20)) for seed in range(30))


# --- proofs that hold, by hand


def make_split_recipients() -> tuple[LyingServer, tuple[Exhibit, Exhibit]]:
    server, series = make_server(ServerLie.SPLIT_RECIPIENTS, B), [make_series(A, 1, [A, B, C])]
    server.submit(series[0].encode())
    server.close()
    exhibits = get_exhibits(server, series)
    return server, (exhibits[Kind.RECEIVED, B, 1], exhibits[Kind.RECEIVED, C, 1])


def test_split_recipients_is_provable() -> None:
    """Flaw S2 of the reference: one side's recipients were computed from the other's, and never differed."""
    server, pair = make_split_recipients()
    found = find_proof(server.server_key, pair)
    assert found is not None
    assert verify_proof(found, server.server_key).lie is Lie.CONFLICT


def test_proof_discloses_no_more_than_needed() -> None:
    """V-C: one row and one name; ids of others than the two clients are not in the file."""
    world = World(3, size=4, lie=ServerLie.DROP)
    world.run_until_accused()
    (accusation,) = [one for one in world.accusations if one.proof][:1]
    assert accusation.proof
    true = parse_proof(accusation.proof)
    assert sum(len(exhibit.shown) for exhibit in true.exhibits) == 1
    involved = {exhibit.leaf.client for exhibit in true.exhibits}
    assert [one.id in accusation.proof for one in world.devices] == [one.id in involved for one in world.devices]


def make_literal_row(sequence: int, common: bytes, ciphertexts: dict[bytes, bytes]) -> Row:
    names = tuple((one, ciphertexts.get(one, proof.ABSENT)) for one in CLIENTS)
    return Row(sequence, b"s" * 32, 0, 1, A, common.ljust(32, b"\0"), names)


@pytest.mark.parametrize(
    ("changed", "conflict"),
    [
        ({}, False),
        ({"common": bytes.fromhex("63")}, True),
        ({"ciphertexts": {B: bytes.fromhex("08").ljust(32, b"\0")}}, True),
        ({"ciphertexts": {C: bytes.fromhex("08090a0b").ljust(32, b"\0")}}, False),
    ],
    ids=["equal", "common differs", "ciphertext differs", "ciphertexts of two recipients"],
)
def test_reference_vectors(changed: dict[str, object], conflict: bool) -> None:
    """Ids a, b, c; sequence 42; common 00010203; ciphertext 04050607."""
    fields = {"common": bytes.fromhex("00010203"), "ciphertexts": {B: bytes.fromhex("04050607").ljust(32, b"\0")}}
    one, other = make_literal_row(42, **fields), make_literal_row(42, **(fields | changed))
    assert proof.is_in_conflict(one, other) is conflict


def test_verifier_stands_alone() -> None:
    """The standard library and one signature library: whoever checks a proof need not trust the rest of Proofcast."""
    tree = ast.parse(Path(proof.__file__).read_text())
    roots = {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert roots - sys.stdlib_module_names == {"nacl"}


def test_inbox_packet_is_what_the_leaf_is_about() -> None:
    server, series = make_server(), [make_series(A, 1, [A, B])]
    server.submit(series[0].encode())
    server.close()
    (packet,) = server.history[B]
    assert isinstance(packet, InboxPacket)
    rows = [(one.sequence, one.make_row(B).compute_hash()) for one in packet.deliveries]
    packet.attestation.verify(server.server_key, (Kind.RECEIVED, B), 0, rows)

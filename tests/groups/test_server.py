"""The server's processes behind their doors: who is refused, what comes through each door, what survives a kill."""

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from nacl.signing import SigningKey

from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Unavailable
from proofcast.groups.frame import EntryKind
from proofcast.groups.identity import KeyBundle
from proofcast.groups.io import device as device_module
from proofcast.groups.io.connection import Connection, connect, parse_json
from proofcast.groups.io.device import create_device
from proofcast.groups.io.launch import LaunchedServer, launch_server, run_launched_server
from proofcast.groups.io.log import get_first, list_segments
from proofcast.groups.io.processes import Options
from proofcast.groups.io.serverkey import load_server_key
from proofcast.groups.io.stream import CALL, StreamKind
from proofcast.groups.io.watch import open_watch
from proofcast.groups.link import encode_list
from proofcast.groups.outbox import Draft
from proofcast.groups.packet import InboxPacket, parse_packet
from proofcast.groups.series import Envelope, Form, Message, Series
from proofcast.groups.witness import Quorum, encode_cosignatures

ALICE, BOB, MALLORY = (SigningKey(bytes([number]) * 32) for number in (1, 2, 3))
ALICE_ID, BOB_ID = bytes(ALICE.verify_key), bytes(BOB.verify_key)


def make_bundle(device: SigningKey, number: int) -> bytes:
    unsigned = KeyBundle(bytes(device.verify_key), b"c" * 32, False, number.to_bytes(32, "big"), b"")
    return unsigned.encode() + device.sign(unsigned.get_signed_bytes()).signature


def make_series(counter: int) -> bytes:
    """From Alice to Bob."""
    dice = random.Random(counter)
    envelopes = tuple(Envelope(one, Form.NORMAL, dice.randbytes(127)) for one in sorted((ALICE_ID, BOB_ID)))
    return Series(ALICE_ID, counter, (Message(ALICE_ID, b"\x01" + dice.randbytes(99), envelopes),)).encode()


@dataclass(frozen=True, slots=True)
class Both:
    server: LaunchedServer
    alice: Connection
    bob: Connection


@asynccontextmanager
async def meet(server: LaunchedServer) -> AsyncIterator[Both]:
    """Alice and Bob, registered."""
    key = server.running.server_key
    async with connect(server.url, key, ALICE) as alice, connect(server.url, key, BOB) as bob:
        for device, connection in ((ALICE, alice), (BOB, bob)):
            if not (await connection.get_facts()).registered:
                await connection.publish(make_bundle(device, 1))
        yield Both(server, alice, bob)


Work = Callable[[Both], Awaitable[None]]


def play(server: LaunchedServer, work: Work) -> None:
    async def run() -> None:
        async with meet(server) as both:
            await work(both)

    asyncio.run(run())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchedServer]:
    with run_launched_server(Options(str(tmp_path_factory.mktemp("server")), epoch_s=0.005)) as launched:
        yield launched


async def send_next(both: Both, count: int = 1) -> int:
    """Counter of the last of Alice's next series, all in one call."""
    counter = (await both.alice.get_facts()).counter
    return await both.alice.send([make_series(counter + one) for one in range(1, count + 1)])


async def assert_refused(call: Awaitable[object], kind: type[ProofcastError], words: str) -> None:
    with pytest.raises(kind, match=words):
        await call


# --- refusals


def test_without_a_token_nothing_is_done(server: LaunchedServer) -> None:
    async def work(both: Both) -> None:
        for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": f"Bearer {'A' * 96}"}):
            stranger = Connection(both.alice.session, both.alice.url, "")
            stranger.headers = headers
            for call in (stranger.read(0), stranger.delete(1), stranger.send([make_series(1)]), stranger.demand()):
                await assert_refused(call, InvalidRequest, "credentials")

    play(server, work)


def test_other_device_cannot_delete_inbox(server: LaunchedServer) -> None:
    """Flaw S6 of the reference: its bearer token was the device id."""

    async def work(both: Both) -> None:
        await send_next(both)
        before = await both.alice.read(0)
        await both.bob.delete(1 << 62)
        assert before
        assert await both.alice.read(0) == before

    play(server, work)


def test_other_device_cannot_send(server: LaunchedServer) -> None:
    async def work(both: Both) -> None:
        counter = (await both.alice.get_facts()).counter
        await assert_refused(both.bob.send([make_series(counter + 1)]), InvalidRequest, "names the sender")

    play(server, work)


def test_server_with_another_key_is_refused(server: LaunchedServer) -> None:
    async def run() -> None:
        async with connect(server.url, b"k" * 32, ALICE):
            raise AssertionError("connected")

    with pytest.raises(InvalidInput, match="has the key"):
        asyncio.run(run())


def test_absent_server_is_unavailable() -> None:
    async def run() -> None:
        async with connect("http://127.0.0.1:9", b"k" * 32, ALICE):
            raise AssertionError("connected")

    with pytest.raises(Unavailable, match="does not answer"):
        asyncio.run(run())


def test_nonsense_is_refused_and_changes_nothing(server: LaunchedServer) -> None:
    async def work(both: Both) -> None:
        facts = await both.alice.get_facts()
        for body in (b"", b"\0\0\0\0", b"\0\0\0\x05abc", encode_list([b"\x01" * 50])):
            await assert_refused(both.alice.call("POST", "/v1/series", body), InvalidInput, "the (list|series)")
        await assert_refused(both.alice.call("GET", "/v1/inbox?after=-1"), InvalidRequest, "no sequence")
        await assert_refused(both.alice.claim(b"x" * 32), InvalidRequest, "not registered")
        assert await both.alice.get_facts() == facts

    play(server, work)


@pytest.mark.parametrize("answer", [b"", b"[]", b"{", b"[" * 1_000_000, b"\xff"])
def test_answer_that_is_no_small_object_is_nothing(answer: bytes) -> None:
    """Deep nesting would exhaust the stack where a library has raised the limit of recursion."""
    assert parse_json(answer) == {}


# --- doors


def test_batch_is_answered_when_all_of_it_is_attested(server: LaunchedServer) -> None:
    async def work(both: Both) -> None:
        last = await send_next(both, 20)
        facts = await both.alice.get_facts()
        assert (facts.counter, facts.attested) == (last, last)
        assert await both.alice.send([make_series(last)]) == last, "the same bytes get the same answer"

    play(server, work)


def test_every_door_shows_the_same_packets(server: LaunchedServer) -> None:
    """Plain GET, server-sent events, binary stream."""

    async def work(both: Both) -> None:
        await both.bob.delete(1 << 62)
        await send_next(both, 3)
        got = await both.bob.read(0)
        assert got
        assert await read_events(both.bob, len(got)) == got
        assert await read_stream(both.bob, len(got)) == got

    async def read_events(bob: Connection, count: int) -> list[bytes]:
        async with bob.session.get(bob.url + "/v1/events", headers=bob.headers) as response:
            lines = [line async for line in limit(response.content, "data: ", count)]
        return [base64.b64decode(line) for line in lines]

    async def limit(content: aiohttp.StreamReader, prefix: str, count: int) -> AsyncIterator[str]:
        while count and (line := (await content.readline()).decode()):
            if line.startswith(prefix) and len(line) > 20:
                count -= 1
                yield line.removeprefix(prefix)

    async def read_stream(bob: Connection, count: int) -> list[bytes]:
        packets: list[bytes] = []
        async with bob.session.ws_connect(bob.url + "/v1/stream", headers=bob.headers) as stream:
            while len(packets) < count:
                data = await stream.receive_bytes()
                packets += [data] if data[0] == StreamKind.PACKET else []
        return packets

    play(server, work)


def test_stream_takes_calls_and_refuses_in_words(server: LaunchedServer) -> None:
    async def work(both: Both) -> None:
        alice = both.alice
        counter = (await alice.get_facts()).counter + 1
        async with alice.session.ws_connect(
            alice.url + "/v1/stream?after=999999999999", headers=alice.headers
        ) as stream:
            answers: dict[int, bytes] = {}
            await stream.send_bytes(CALL.pack(1, EntryKind.SERIES) + encode_list([make_series(counter)]))
            await stream.send_bytes(CALL.pack(2, 99))
            await stream.send_bytes(b"")
            while len(answers) < 3:
                data = await stream.receive_bytes()
                if data[0] in (StreamKind.ANSWER, StreamKind.REFUSAL):
                    answers[int.from_bytes(data[1:5], "big")] = data[5:]
        assert int.from_bytes(answers[1], "big") == counter
        assert "unknown kind `99`" in json.loads(answers[2])["message"]

    play(server, work)


def test_keys_are_handed_out_once(server: LaunchedServer) -> None:
    async def work(both: Both) -> None:
        await both.bob.publish(make_bundle(BOB, 77) + make_bundle(BOB, 78))
        left = (await both.bob.get_facts()).keys
        claimed = [await both.alice.claim(BOB_ID) for _ in range(left)]
        assert len(set(claimed)) == left
        await assert_refused(both.alice.claim(BOB_ID), Unavailable, "no keys left")

    play(server, work)


def test_idle_server_advances_and_attests_on_demand(server: LaunchedServer) -> None:
    async def work(both: Both) -> None:
        await both.bob.delete(1 << 62)
        await both.bob.demand()
        packet = parse_packet((await both.bob.read(0))[-1])
        assert isinstance(packet, InboxPacket)
        assert packet.deliveries == ()

    play(server, work)


# --- restarts


@pytest.mark.slow
def test_restart_with_other_shards_serves_the_same_bytes(tmp_path: Path) -> None:
    seen: list[list[bytes]] = []

    async def first(both: Both) -> None:
        for _ in range(3):
            await send_next(both, 5)
        await both.alice.delete((await read_ends(both.alice))[2])
        await keep(both)

    async def keep(both: Both) -> None:
        seen.append(await both.alice.read(0) + await both.bob.read(0))

    for shards, work in ((1, first), (4, keep), (2, keep)):
        with run_launched_server(Options(str(tmp_path), shards=shards)) as launched:
            play(launched, work)
    assert seen[0] == seen[1] == seen[2] != []


async def read_ends(connection: Connection) -> list[int]:
    return [parse_packet(data).attestation.leaf.next for data in await connection.read(0)]


@pytest.mark.slow
def test_log_is_replaced_by_a_snapshot_while_the_server_works(tmp_path: Path) -> None:
    """Every frame begins a segment here, and after eight of them the server compacts by itself."""
    seen: list[list[bytes]] = []

    async def send_until_compacted(both: Both) -> None:
        async with asyncio.timeout(60):
            while not (tmp_path / "snapshot").exists():
                await send_next(both)
        for _ in range(3):
            await send_next(both)
        seen.append(await both.bob.read(0))

    async def read(both: Both) -> None:
        seen.append(await both.bob.read(0))

    options = Options(str(tmp_path), shards=2, epoch_s=0.005, segment_bytes_max=1)
    for work in (send_until_compacted, read):
        with run_launched_server(options) as launched:
            play(launched, work)
    assert seen[0] == seen[1] != []
    assert get_first(list_segments(tmp_path / "frames")[0]) > 1


# --- witnesses


def test_stranger_is_no_witness(server: LaunchedServer, tmp_path: Path) -> None:
    with open_watch(tmp_path, server.url, server.running.server_key) as watch:
        with pytest.raises(InvalidRequest, match="was not told of a witness"):
            asyncio.run(watch.look())
        watch.witness.server_key = b"k" * 32
        with pytest.raises(InvalidInput, match="has the key"):
            asyncio.run(watch.look())


def test_false_cosignature_is_refused(tmp_path: Path) -> None:
    witness = SigningKey(b"w" * 32)
    options = Options(str(tmp_path), witnesses=(bytes(witness.verify_key).hex(),))

    async def work(both: Both) -> None:
        await send_next(both)
        for body in (b"", bytes(71), encode_cosignatures([(1, bytes(64))]), encode_cosignatures([(10**6, bytes(64))])):
            call = both.alice.call("POST", "/v1/cosignatures", bytes(witness.verify_key) + body)
            await assert_refused(call, InvalidInput, "cosignature|is not there")

    with run_launched_server(options) as launched:
        play(launched, work)


@pytest.mark.slow
def test_device_believes_what_its_witnesses_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until they have, nothing is delivered; what they signed survives a restart of the server."""
    monkeypatch.setattr(device_module, "WITNESS_S_MAX", 0)
    key = load_server_key(tmp_path / "server").public
    owner = create_device(tmp_path / "device", "password", "", key)
    with owner.vault, open_watch(tmp_path / "watch", "", key) as watch:
        owner.demand_witnesses(Quorum((watch.key, b"o" * 32), 1))
        options = Options(str(tmp_path / "server"), shards=2, epoch_s=0.005, witnesses=(watch.key.hex(),))

        async def write(url: str) -> None:
            async with connect(url, key, owner.identity) as connection:
                await owner.perform(owner.client.register(0.0), connection)
                draft = Draft(b"to myself", (owner.device_id,))
                await owner.perform(owner.client.send((draft,), 0.0), connection)
                await assert_refused(owner.read(connection), Unavailable, "`0` witnesses signed")
                assert not owner.notebook.operations
                assert await watch.look() > 0

        async def read(url: str) -> None:
            async with connect(url, key, owner.identity) as connection:
                await owner.read(connection)
                assert owner.notebook.operations
                await watch.look()

        for work in (write, read):
            with run_launched_server(options) as launched:
                watch.url = launched.url
                asyncio.run(work(launched.url))


@pytest.mark.slow
def test_kill_loses_nothing_acknowledged_and_signs_nothing_twice(tmp_path: Path) -> None:
    """`bench/kill_groups.py` does the same 200 times."""
    roots: dict[int, bytes] = {}
    acknowledged = 0

    async def send_until_killed(both: Both) -> None:
        nonlocal acknowledged
        dice = random.Random(acknowledged)
        kill_after = dice.randrange(1, 12)
        for sent in range(100):
            try:
                call = send_next(both)
                if sent == kill_after:
                    asyncio.get_running_loop().call_soon(both.server.kill)
                acknowledged = await call
            except Unavailable:
                return

    async def check(both: Both) -> None:
        packets = [parse_packet(data) for data in await both.bob.read(0)]
        deliveries = [one for packet in packets if isinstance(packet, InboxPacket) for one in packet.deliveries]
        assert len(deliveries) >= acknowledged
        for packet in packets:
            checkpoint = packet.attestation.checkpoint
            assert roots.setdefault(checkpoint.epoch, checkpoint.encode()) == checkpoint.encode()

    for _ in range(5):
        launched = launch_server(Options(str(tmp_path)))
        play(launched, check)
        play(launched, send_until_killed)
    with run_launched_server(Options(str(tmp_path))) as launched:
        play(launched, check)
    assert acknowledged > 0

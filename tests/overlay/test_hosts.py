"""Real libp2p hosts: what is contained, that connections are kept, and the scenarios of the simulator."""

import gc
import logging
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest
import trio
from libp2p import new_host
from libp2p.custom_types import TProtocol
from libp2p.network.config import ConnectionConfig
from multiaddr import Multiaddr

from proofcast.errors import InvalidRequest, Unavailable
from proofcast.overlay.identity import Contact, Ed25519Signer, verify_ed25519
from proofcast.overlay.io.addresses import make_peer_id, parse_address
from proofcast.overlay.io.host import PROTOCOL, Host, open_host
from proofcast.overlay.io.kad import ask_find_node, make_kad_server
from proofcast.overlay.io.line import PATIENCE_S, Line
from proofcast.overlay.io.store import PeerStore
from proofcast.overlay.kademlia import Table
from proofcast.overlay.messages import Ack, FindNode, Notify
from proofcast.overlay.outputs import Output, Send
from proofcast.overlay.peer import Peer
from proofcast.overlay.records import Event, EventId, sign_event
from proofcast.overlay.seen import Mark
from proofcast.overlay.settings import PAYLOAD_BYTES_MAX, Settings
from proofcast.routing.attributes import parse_attributes
from proofcast.testing.overlay.hosts import LISTEN, HostStage
from proofcast.testing.overlay.scenario import find_differences

pytestmark = pytest.mark.filterwarnings("ignore")  # py-libp2p warns of its own deprecations
HERE = Path(__file__).parent
KAD = "/proofcast/test/kad/1.0.0"
BIG = bytes(PAYLOAD_BYTES_MAX)

STORY = """
peers 8 bucket_contacts=8 capacity=4
subscribe 0-5 surf T/price R 0 100
subscribe 3 ski T
wait 0
publish 7 surf T/price V 5
publish 6 ski T/surf T
wait 0
crash 2
publish 7 surf T/price V 50
wait 0
list
----
7 price V 5/surf T -> 0 1 2 3 4 5
6 ski T/surf T -> 3
7 price V 50/surf T -> 0 1 3 4 5
"""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    gc.collect()  # py-libp2p leaves sockets to the collector, which must not complain in somebody else's test


def make_peer(contact: Contact, signer: Ed25519Signer) -> Peer:
    return Peer(contact, signer, verify_ed25519, Settings(), session=time.time_ns(), entropy=1, now=time.time())


def ignore(output: Output) -> None:
    pass


def test_address_without_a_peer_id_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no address of a peer"):
        parse_address("/ip4/127.0.0.1/tcp/1")


@pytest.mark.slow
def test_dial_error_is_contained() -> None:
    """P12: nobody listens there; the message comes back as undeliverable and the host runs on."""

    async def run() -> None:
        async with open_host(bytes(32), LISTEN, make_peer, ignore) as host:
            gone = Contact(Ed25519Signer(b"g" * 32).public_key, "", b"")
            nowhere = f"/ip4/127.0.0.1/tcp/1/p2p/{make_peer_id(gone.public_key)}"
            for wrong in (gone, replace(gone, address="/ip4/127.0.0.1/tcp/1"), replace(gone, address=nowhere)):
                host.carry_out([Send(wrong, FindNode(1))])
                with trio.fail_after(20):
                    while host.is_busy():
                        await trio.sleep(0.01)
            with pytest.raises(Unavailable, match="no peer answers"):
                await host.greet(nowhere)
            assert host.get_neighbours() == []

    trio.run(run)


@pytest.mark.slow
def test_connections_are_reused() -> None:
    """P12: a hundred messages, one stream."""

    async def run() -> None:
        async with (
            open_host(b"a" * 32, LISTEN, make_peer, ignore) as one,
            open_host(b"b" * 32, LISTEN, make_peer, ignore) as other,
        ):
            contact = await one.greet(other.peer.seat.contact.address)
            for number in range(100):
                one.carry_out([Send(contact, FindNode(number))])
            with trio.fail_after(20):
                while one.is_busy():
                    await trio.sleep(0.01)
            (connection,) = one.libp2p.get_network().connections[parse_address(contact.address).peer_id]
            assert sum(stream.get_protocol() == PROTOCOL for stream in connection.get_streams()) == 1

    trio.run(run)


def test_acknowledgements_wait_for_company() -> None:
    """They are written with the next message, or after a while; anything else is written at once."""

    async def run() -> None:
        line = Line(Contact(b"k", "", b""))
        line.add(Ack(EventId(b"p", 1, 1), 1, None))
        assert trio.current_time() < line.due <= trio.current_time() + PATIENCE_S
        line.add(FindNode(1))
        assert line.due <= trio.current_time()
        assert await line.wait_until_due(0.0)
        line.close()
        assert not await line.wait_until_due(float("inf"))

    trio.run(run)


@pytest.mark.slow
def test_more_than_a_window_passes() -> None:
    """Ten megabytes in large events: the reader gives the muxer's window back, not at every read but in time."""

    async def run() -> None:
        async with (
            open_host(b"a" * 32, LISTEN, make_peer, ignore) as one,
            open_host(b"b" * 32, LISTEN, make_peer, ignore) as other,
        ):
            contact = await one.greet(other.peer.seat.contact.address)
            for number in range(40):
                event = Event(EventId(one.peer.seat.contact.public_key, 1, number), 0, parse_attributes("big T"), BIG)
                one.carry_out([Send(contact, Notify(sign_event(one.peer.seat.signer, event), 1, None))])
            with trio.fail_after(60):
                while other.peer.seat.counts["redundant"] < 40:
                    await trio.sleep(0.01)

    trio.run(run)


@pytest.mark.slow
def test_story_comes_out_as_in_the_simulator() -> None:
    with HostStage() as stage:
        assert find_differences(STORY, stage, Settings()) == []


def test_stored_state_survives(tmp_path: Path) -> None:
    store = PeerStore(tmp_path / "peer")
    mark = Mark(b"p", 1 << 63, 5, (1 << 4000) | 1)
    store.save_mark(mark)
    store.save_subscription("surf T", 1.5)
    store.save_contacts([Contact(b"k", "/a", b"s")])
    seed = store.seed
    store.close()
    again = PeerStore(tmp_path / "peer")
    assert (again.seed, again.load_marks()) == (seed, (mark,))
    assert again.load_subscriptions() == [("surf T", 1.5)]
    assert again.load_contacts() == [Contact(b"k", "/a", b"s")]
    again.close()


def test_kept_events_survive_until_they_are_taken(tmp_path: Path) -> None:
    store = PeerStore(tmp_path / "peer")
    events = [Event(EventId(b"p", 1, number), 5, parse_attributes("surf T"), b"x", b"s") for number in (1, 2, 3)]
    for event in events:
        assert store.save_delivery(Mark(b"p", 1, event.id.sequence, 1), event, ["surf T"]) == 0
    assert store.save_delivery(Mark(b"q", 1, 1, 1), events[0], []) == 0
    store.close()
    again = PeerStore(tmp_path / "peer")
    (first, event), *rest = again.read_inbox("surf T", 9)
    assert [event, *(one for _, one in rest)] == events
    again.empty_inbox("surf T", first)
    assert again.count_inbox("surf T") == 2
    assert {mark.newest for mark in again.load_marks()} == {3, 1}
    again.close()


def test_second_peer_on_one_folder_is_refused(tmp_path: Path) -> None:
    first = PeerStore(tmp_path)
    with pytest.raises(Unavailable, match="another peer uses"):
        PeerStore(tmp_path)
    first.close()


def test_damaged_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "identity.seed").write_bytes(b"short")
    with pytest.raises(InvalidRequest, match="`5` bytes instead of `32`"):
        PeerStore(tmp_path)


@pytest.mark.slow
@pytest.mark.needs("go")
def test_go_peer_greets_and_answers(tmp_path: Path) -> None:
    """A host of go-libp2p, built here from its module proxy, speaks our frames, and Kademlia with us."""
    shutil.copytree(HERE / "gohost", tmp_path / "gohost")
    program = tmp_path / "gohost" / "gohost"
    built = subprocess.run(["go", "build", "-o", program, "."], cwd=program.parent, capture_output=True, text=True)
    if built.returncode and "dial tcp" in built.stderr:
        pytest.skip("needs the Go module proxy, which does not answer")
    assert built.returncode == 0, built.stderr
    with subprocess.Popen([program, KAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as partner:
        assert partner.stdout
        assert partner.stdin
        address = partner.stdout.readline().strip()
        trio.run(talk_to_go, address)
        trio.run(exchange_peers_with_go, address, partner.stdin, partner.stdout)
        partner.stdin.close()


async def talk_to_go(address: str) -> None:
    async with open_host(bytes(32), LISTEN, make_peer, ignore) as host:
        contact = await host.greet(address)
        found: list[Contact] = []
        host.peer.finding.find(1, lambda contacts, now: found.extend(contacts), time.time(), (contact,))
        host.carry_out(host.peer.tick(time.time()))
        with trio.fail_after(20):
            while not found:
                await trio.sleep(0.01)
        assert found == [contact]
        assert contact.public_key in host.peer.seat.table


async def exchange_peers_with_go(address: str, to_go: TextIO, from_go: TextIO) -> None:
    """FIND_NODE both ways: Go tells one of us where the other is, and finds by us a peer that it never met."""
    async with (
        open_host(b"a" * 32, LISTEN, make_peer, ignore, kad_protocol=KAD) as one,
        open_host(b"b" * 32, LISTEN, make_peer, ignore, kad_protocol=KAD) as other,
        open_host(b"c" * 32, LISTEN, make_peer, ignore, kad_protocol=KAD) as third,
    ):
        for host in (one, other):
            await host.libp2p.connect(parse_address(address))
        wanted = other.peer.seat.contact
        with trio.fail_after(20):
            while wanted.address not in await ask_go(one, address, wanted):
                await trio.sleep(0.05)  # until Go has identified the other and entered it in its table
        unknown = third.peer.seat.contact
        one.peer.seat.table.add(unknown)
        with trio.fail_after(20):
            answer = ""
            while unknown.address.partition("/p2p/")[0] not in answer:
                to_go.write(f"{make_peer_id(unknown.public_key)}\n")
                to_go.flush()
                answer = await trio.to_thread.run_sync(from_go.readline)
                await trio.sleep(0.05)  # Go answers for whom it is connected with before it enters anybody in its table


async def ask_go(host: Host, address: str, wanted: Contact) -> list[str]:
    key = parse_address(wanted.address).peer_id.to_bytes()
    return await ask_find_node(host.libp2p, parse_address(address).peer_id, key, KAD)


@pytest.mark.slow
def test_peer_enters_by_a_host_of_another_kind() -> None:
    """A bootstrap address may be any host with the same Kademlia: it is asked for peers, and those are greeted."""

    async def run() -> None:
        async with (
            open_host(b"a" * 32, LISTEN, make_peer, ignore, kad_protocol=KAD) as member,
            open_plain_host(member.peer.seat.contact) as foreign,
            open_host(b"b" * 32, LISTEN, make_peer, ignore, kad_protocol=KAD) as newcomer,
        ):
            assert await newcomer.find_contacts(foreign, KAD) == [member.peer.seat.contact]
            with pytest.raises(Unavailable, match="no peer answers"):
                await newcomer.find_contacts(foreign, "/another/kad/1.0.0")

    trio.run(run)


@asynccontextmanager
async def open_plain_host(known: Contact) -> AsyncIterator[str]:
    """A libp2p host that serves Kademlia and has never heard of the overlay; gives its address."""
    table = Table(0, 20)
    table.add(known)
    libp2p = new_host(connection_config=ConnectionConfig(max_connections_per_peer=1, min_connections=0))
    async with libp2p.run([Multiaddr(LISTEN)]):
        libp2p.set_stream_handler(TProtocol(KAD), make_kad_server(table))
        yield str(libp2p.get_addrs()[0])

"""What a device spends on sending and receiving, as in Fig. 10 of the paper, and what it keeps.

The devices are real, with double ratchets and an encrypted file that is synced on every commit; the server is the one
of the simulations, in memory, and is not measured. "To n" is n peers; the device's own copy comes on top.
"""

import os
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from nacl.signing import SigningKey

from proofcast.groups import outputs
from proofcast.groups.client import Client
from proofcast.groups.io.sessions import OlmSessions
from proofcast.groups.io.vault import Vault, create_vault
from proofcast.groups.outbox import Draft
from proofcast.groups.outputs import Output
from proofcast.groups.packet import InboxPacket
from proofcast.groups.sealing import PAYLOAD_BYTES, CommonPlaintext, Sort, seal_common
from proofcast.testing.groups.server import LyingServer

PEERS = (1, 4, 8, 32)
SIZES = (359, 756)
"""Bytes of the paper's operations: a password updated, a post edited."""
ROUNDS = 150
IN_A_ROW = 25
FEW_ROUNDS = 400
"""Of sends to a single peer, shared among more: the shortest scatter most."""
TOGETHER_ROUNDS = 40
"""CPU times scatter by half where something else runs."""
COMMIT_SERIES = 32
"""Series that share a commit, in the second way to send."""


@dataclass(slots=True)
class Bench:
    """A server without lies, devices, and an encrypted file for the first of them."""

    server: LyingServer
    clients: list[Client]
    sessions: list[OlmSessions]
    vault: Vault

    def perform(self, client: Client, wanted: list[Output]) -> None:
        """What a driver does, except storing."""
        for output in wanted:
            match output:
                case outputs.SendSeries():
                    self.server.submit(output.data)
                case outputs.ClaimKeys():
                    self.perform(client, client.receive(self.server.claim(output.devices), 0.0))
                case outputs.PublishKeys():
                    self.server.publish(output.bundles)
                case outputs.DeleteInbox():
                    self.server.delete(client.device, output.sequence)

    def settle(self, clients: list[Client]) -> None:
        """Let the order go on until nobody has anything to say."""
        while self.server.queue:
            self.server.close()
            for client in clients:
                for packet in list(self.server.inboxes.get(client.device, [])):
                    self.perform(client, client.receive(packet, 0.0))
                self.server.inboxes[client.device] = []


def make_bench(folder: Path, peers: int) -> Bench:
    server = LyingServer(SigningKey.generate(), random.Random(1))
    keys = [SigningKey.generate() for _ in range(peers + 1)]
    sessions = [OlmSessions(key, {}) for key in keys]
    clients = [Client(one.device, server.server_key, one, os.urandom) for one in sessions]
    bench = Bench(server, clients, sessions, create_vault(folder / f"device{peers}", "bench"))
    for client in clients:
        bench.perform(client, client.register(0.0))
    greet(bench)
    greet(bench)
    return bench


def greet(bench: Bench) -> None:
    """Everybody hears from everybody: sessions are in their normal form and histories confirmed."""
    everybody = tuple(client.device for client in bench.clients)
    for client in bench.clients:
        bench.perform(client, client.send((Draft(b"hello", everybody),), 0.0))
        bench.settle(bench.clients)


def get_changes(wanted: list[Output]) -> dict[str, bytes | None]:
    return {name: value for one in wanted if isinstance(one, outputs.Store) for name, value in one.changes.items()}


@dataclass(slots=True)
class ClientCosts:
    """Of one series with one message, best of many, in microseconds."""

    peers: int
    size: int
    send_wall_us: float = 0.0
    """State stored durably for each."""
    sync_wall_us: float = 0.0
    """The disk's part of it: four kilobytes appended to a file and synced, after the sends."""
    send_cpu_us: float = 0.0
    """Several series per commit."""
    session_us: float = 0.0
    symmetric_us: float = 0.0
    receive_cpu_us: float = 0.0
    receive_session_us: float = 0.0

    @property
    def transcript_us(self) -> float:
        """What is left: histories, encoding, storing."""
        return self.send_cpu_us - self.session_us - self.symmetric_us


def measure_client(peers: int, size: int, folder: Path) -> ClientCosts:
    bench = make_bench(folder, peers)
    draft = Draft(os.urandom(size), tuple(client.device for client in bench.clients))
    alone = [
        found
        for _ in range(max(ROUNDS, FEW_ROUNDS // peers) // IN_A_ROW)
        for found in send_in_a_row(bench, draft, folder)
    ]
    together = min(send_together(bench, draft) for _ in range(max(TOGETHER_ROUNDS, FEW_ROUNDS // peers)))
    sealed, opened = (min(spent) for spent in zip(*(use_sessions(bench) for _ in range(8)), strict=True))
    received = min(receive(bench, draft) for _ in range(10))
    bench.vault.database.close()
    walls = (min(spent) for spent in zip(*alone, strict=True))
    seconds = *walls, together, sealed, measure_symmetric(size), received, opened
    return ClientCosts(peers, size, *(1e6 * one for one in seconds))


def send_in_a_row(bench: Bench, draft: Draft, folder: Path) -> list[tuple[float, float]]:
    """Wall seconds until the ciphertexts of one series may leave, and of a sync, several times each.

    Server and peers come afterwards: on the sender's machine they would not be either.
    """
    sent = [send_alone(bench, draft) for _ in range(IN_A_ROW)]
    synced = [sync_alone(folder) for _ in range(IN_A_ROW)]
    for _, wanted in sent:
        bench.perform(bench.clients[0], wanted)
    bench.settle(bench.clients)
    return [(spent, sync) for (spent, _), sync in zip(sent, synced, strict=True)]


def send_alone(bench: Bench, draft: Draft) -> tuple[float, list[Output]]:
    began = time.perf_counter()
    wanted = bench.clients[0].send((draft,), 0.0)
    bench.vault.write(get_changes(wanted))
    return time.perf_counter() - began, wanted


def sync_alone(folder: Path) -> float:
    """Wall seconds of the least that a durable commit can be on this disk."""
    file = os.open(folder / "synced", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    began = time.perf_counter()
    os.write(file, bytes(4_096))
    os.fdatasync(file)
    spent = time.perf_counter() - began
    os.close(file)
    return spent


def send_together(bench: Bench, draft: Draft) -> float:
    """CPU seconds of one series where several share a commit."""
    client = bench.clients[0]
    began = time.process_time()
    wanted = client.send_all([(draft,)] * COMMIT_SERIES, 0.0)
    bench.vault.write(get_changes(wanted))
    spent = time.process_time() - began
    bench.perform(client, wanted)
    bench.settle(bench.clients)
    return spent / COMMIT_SERIES


def use_sessions(bench: Bench) -> tuple[float, float]:
    """CPU seconds in the ratchets for one message: of its sender, for all recipients; of one recipient."""
    own, *peers = bench.sessions
    payload = bytes(PAYLOAD_BYTES)
    began = time.process_time()
    sealed = [[one.encrypt(peer.device, payload) for peer in bench.sessions] for one in [own] * COMMIT_SERIES]
    sending = time.process_time() - began
    for place, peer in enumerate(peers, start=1):
        began = time.process_time()
        for envelopes in sealed:
            peer.decrypt(own.device, *envelopes[place])
        receiving = time.process_time() - began
    return sending / COMMIT_SERIES, receiving / COMMIT_SERIES


def receive(bench: Bench, draft: Draft) -> float:
    """CPU seconds of receiving one message from a peer, stored."""
    client, peer = bench.clients[0], bench.clients[1]
    bench.perform(peer, peer.send((draft,), 0.0))
    bench.server.close()
    (packet,) = (one for one in bench.server.inboxes[client.device] if isinstance(one, InboxPacket))
    began = time.process_time()
    wanted = client.receive(packet, 0.0)
    bench.vault.write(get_changes(wanted))
    spent = time.process_time() - began
    bench.server.inboxes[client.device] = []
    bench.perform(client, wanted)
    for one in bench.clients[1:]:
        for got in bench.server.inboxes.get(one.device, []):
            bench.perform(one, one.receive(got, 0.0))
        bench.server.inboxes[one.device] = []
    bench.settle(bench.clients)
    return spent


def measure_symmetric(size: int) -> float:
    plain = CommonPlaintext(Sort.OPERATION, bytes(32), 1, 0, 1, bytes(32), os.urandom(size))
    began = time.process_time()
    for _ in range(1_000):
        seal_common(plain, os.urandom(32), bytes(16))
    return (time.process_time() - began) / 1_000


@dataclass(frozen=True, slots=True)
class Sizes:
    normal: int
    """Bytes of one recipient's envelope on the wire: id, form, length, ciphertext."""
    first: int
    session: int
    """Bytes stored per session."""


def measure_sizes() -> Sizes:
    with tempfile.TemporaryDirectory() as folder:
        bench = make_bench(Path(folder), 1)
        one, other = bench.sessions
        normal = one.encrypt(other.device, bytes(PAYLOAD_BYTES))[1]
        stored = one.get_pickle(one.sessions[other.device][0])
        stranger = OlmSessions(SigningKey.generate(), {})
        stranger.open_with(other.make_bundles(1)[0])
        first = stranger.encrypt(other.device, bytes(PAYLOAD_BYTES))[1]
        bench.vault.database.close()
    return Sizes(35 + len(normal), 35 + len(first), len(stored))

"""What a device keeps in the paper's three scenarios, read from the file of a real one.

The device sends to its peers, who do not answer, so that nothing is confirmed and everything must be kept: the entries
of the histories it shares with them, and what the server said to it.
"""

import os
import random
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from nacl.signing import SigningKey

from bench.groups_client import Bench, get_changes
from proofcast.groups.client import Client
from proofcast.groups.io.sessions import ACCOUNT, SELF_KEY, OlmSessions
from proofcast.groups.io.vault import create_vault
from proofcast.groups.outbox import Draft
from proofcast.groups.outputs import Output
from proofcast.testing.groups.server import LyingServer

OPERATION_BYTES = 359
SESSIONS = ("session/", ACCOUNT, SELF_KEY)
"""Records that the paper's figures leave out."""


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    peers: int
    entries: int
    """Unconfirmed, of each history."""
    attestations: int
    messages: int
    paper: str

    @property
    def peers_of_message(self) -> int:
        return self.peers * self.entries // self.messages


SCENARIOS = (
    Scenario("password manager", 8, 2, 2, 2, "1.1 kB"),
    Scenario("family", 20, 50, 50, 250, "84 kB"),
    Scenario("auctioneer", 1_000, 20, 200, 10_000, "1.6 MB"),
)


@dataclass(frozen=True, slots=True)
class Stored:
    records: int
    """Bytes of names and values, sessions and keys left out."""
    file: int
    """Bytes of the encrypted file, everything included."""


def make_device(scenario: Scenario, folder: Path) -> tuple[Bench, list[bytes]]:
    """A device that knows its peers' keys and has a file."""
    server = LyingServer(SigningKey.generate(), random.Random(1))
    peers = [OlmSessions(SigningKey.generate(), {}) for _ in range(scenario.peers)]
    for peer in peers:
        server.publish([peer.make_fallback()])
    sessions = OlmSessions(SigningKey.generate(), {})
    client = Client(sessions.device, server.server_key, sessions, os.urandom)
    bench = Bench(server, [client], [sessions], create_vault(folder / scenario.name, "bench"))
    bench.perform(client, client.register(0.0))
    return bench, [peer.device for peer in peers]


def measure_storage(scenario: Scenario, folder: Path) -> Stored:
    bench, peers = make_device(scenario, folder)
    client, turn = bench.clients[0], cycle(peers)
    changes: dict[str, bytes | None] = {}

    def perform(wanted: list[Output]) -> None:
        changes.update(get_changes(wanted))
        bench.perform(client, wanted)

    for _ in range(scenario.attestations):
        for _ in range(scenario.messages // scenario.attestations):
            recipients = tuple(islice(turn, scenario.peers_of_message))
            perform(client.send((Draft(os.urandom(OPERATION_BYTES), recipients),), 0.0))
            bench.server.counters[client.device] = client.outbox.counter
        bench.server.close()
        packets, bench.server.inboxes[client.device] = bench.server.inboxes[client.device], []
        for packet in packets:
            perform(client.receive(packet, 0.0))
    return store(bench, changes, folder / scenario.name)


def store(bench: Bench, changes: dict[str, bytes | None], path: Path) -> Stored:
    bench.vault.write(changes)
    kept = {name: value for name, value in bench.vault.read_all() if not name.startswith(SESSIONS)}
    with bench.vault:
        pass  # folded, as it is at rest
    return Stored(sum(len(name) + len(value) for name, value in kept.items()), path.stat().st_size)

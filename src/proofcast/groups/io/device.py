"""A device at work: the core, its encrypted file, its server. One loop, no decisions of the protocol.

What the core wants stored, and what the delivered operations mean for the device's owner, is written in one transaction
before anything leaves. Then the rest is done in order; the server's answers go back into the core.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nacl.signing import SigningKey

from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.groups import outputs
from proofcast.groups.client import Client, Recovery
from proofcast.groups.conversation import Operation, encode_operation
from proofcast.groups.identity import parse_bundle
from proofcast.groups.io.connection import Connection
from proofcast.groups.io.sessions import OlmSessions
from proofcast.groups.io.vault import Vault, create_vault, open_vault
from proofcast.groups.notebook import CONTACT, LINKED, Notebook
from proofcast.groups.outbox import Draft
from proofcast.groups.outputs import Output
from proofcast.groups.packet import parse_packet
from proofcast.groups.proof import Checkpoint
from proofcast.groups.succession import verify_succession
from proofcast.groups.witness import Quorum, parse_quorum

IDENTITY, SERVER_URL, SERVER_KEY, SHOWN = "app/identity", "app/server-url", "app/server-key", "app/shown"
QUORUM = "app/quorum"
WITNESS_S_MAX = 10
"""Witnesses look about once a second; after this long they are not there, or see another order than we do."""
WITNESS_RETRY_S = 0.2
ROUNDS_MAX = 1_000
"""Of reading in one `sync`, each up to four megabytes."""


@dataclass(slots=True)
class Device:
    """Made by `create_device` or `open_device`."""

    vault: Vault
    identity: SigningKey
    server_url: str
    client: Client
    notebook: Notebook
    quorum: Quorum = field(default_factory=Quorum)
    """Of witnesses, demanded of every epoch."""
    deletable: int = 0
    """What ends here or before is stored, and may go from the server."""

    @property
    def device_id(self) -> bytes:
        return self.client.device

    def get_proofs(self) -> list[bytes]:
        """Of lies of the server, oldest first."""
        return [value for name, value in sorted(self.vault.read_all()) if name.startswith("proof/")]

    def get_shown(self) -> int:
        """Sequence of the last line that the owner was shown."""
        return int.from_bytes(self.vault.find(SHOWN) or b"", "big")

    def note_shown(self) -> None:
        last = max((said.sequence for said in self.notebook.lines), default=0)
        self.vault.write({SHOWN: last.to_bytes(8, "big")})

    def is_unconfirmed(self, peer: bytes) -> bool:
        """Whether a peer has not yet confirmed all of what we share."""
        return len(self.client.histories.transcripts[peer].sequences) > 1

    async def perform(self, wanted: list[Output], connection: Connection) -> None:
        """Do what the core wants: store first, then the rest in order."""
        changes: dict[str, bytes | None] = {}
        for output in wanted:
            if isinstance(output, outputs.Store):
                changes |= output.changes
        changes |= self.notebook.note(wanted)
        if changes:
            self.vault.write(changes)
        for output in wanted:
            await self.perform_one(output, connection)

    async def perform_one(self, output: Output, connection: Connection) -> None:
        match output:
            case outputs.SendSeries():
                await self.send_series(output, connection)
            case outputs.ClaimKeys():
                bundles = [parse_bundle(data) for data in await claim(connection, output.devices)]
                await self.perform(self.client.receive(outputs.Bundles(tuple(bundles)), time.time()), connection)
            case outputs.PublishKeys():
                await connection.publish(b"".join(bundle.encode() for bundle in output.bundles))
            case outputs.DeleteInbox():
                self.deletable = max(self.deletable, output.sequence)
            case outputs.DemandLeaf():
                await connection.demand()

    async def send_series(self, output: outputs.SendSeries, connection: Connection) -> None:
        """The server may know it already, from before a crash; then its receipt is in the inbox."""
        try:
            await connection.send([output.data])
        except InvalidRequest as error:
            if error.reason is not Reason.STALE_SEQUENCE:
                raise

    async def sync(self, connection: Connection) -> None:
        """Tell the server what it lacks, and take in order all that it has."""
        facts = await connection.get_facts()
        if not facts.registered:
            await self.perform(self.client.register(time.time()), connection)
        else:
            await self.perform(self.client.receive(outputs.KeysLeft(facts.keys), time.time()), connection)
        counter = outputs.ServerCounter(facts.counter, facts.deleted)
        await self.perform(self.client.receive(counter, time.time()), connection)
        await self.perform(self.client.tick(time.time()), connection)
        await self.read(connection)

    async def read(self, connection: Connection) -> None:
        after = 0
        for _ in range(ROUNDS_MAX):
            packets = [parse_packet(data) for data in await connection.read(after)]
            if not packets:
                break
            for packet in packets:
                await self.require_witnesses(packet.attestation.checkpoint, connection)
                await self.perform(self.client.receive(packet, time.time()), connection)
                after = packet.attestation.leaf.next
        if self.deletable:
            await connection.delete(self.deletable)
            self.deletable = 0

    async def require_witnesses(self, checkpoint: Checkpoint, connection: Connection) -> None:
        """Wait until enough witnesses have signed an epoch; raises `Unavailable` where they do not."""
        until = time.monotonic() + WITNESS_S_MAX
        while self.quorum.count:
            try:
                self.quorum.verify(checkpoint, await connection.get_cosignatures(checkpoint.epoch))
                break
            except Unavailable:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(WITNESS_RETRY_S)

    def demand_witnesses(self, quorum: Quorum) -> None:
        self.quorum = quorum
        self.vault.write({QUORUM: quorum.encode()})

    async def send(self, operations: list[tuple[Operation, tuple[bytes, ...]]], connection: Connection) -> None:
        """One series, and read until it has come back."""
        drafts = tuple(Draft(encode_operation(operation), recipients) for operation, recipients in operations)
        await self.perform(self.client.send(drafts, time.time()), connection)
        await self.read(connection)

    async def recover(self, recovery: Recovery, connection: Connection) -> None:
        await self.perform(self.client.recover(recovery, time.time()), connection)


async def claim(connection: Connection, devices: tuple[bytes, ...]) -> list[bytes]:
    """A key bundle of each device that the server has keys of."""
    bundles = []
    for device in devices:
        try:
            bundles.append(await connection.claim(device))
        except InvalidRequest:
            continue
    return bundles


def create_device(path: Path, password: str, server_url: str, server_key: bytes) -> Device:
    """A new identity in a new file."""
    return fill_device(path, password, server_url, {IDENTITY: os.urandom(32), SERVER_KEY: server_key})


def follow(path: Path, password: str, server_url: str, device: Device, statement: bytes) -> Device:
    """The same identity, with its contacts, in a new file for the server that succeeds the device's own."""
    succession = verify_succession(statement, device.client.server_key)
    people = {name: value for name, value in device.vault.read_all() if name.startswith((CONTACT, LINKED))}
    known = {IDENTITY: bytes(device.identity), SERVER_KEY: succession.new}
    return fill_device(path, password, server_url, people | known)


def fill_device(path: Path, password: str, server_url: str, records: Mapping[str, bytes]) -> Device:
    vault = create_vault(path, password)
    vault.write({SERVER_URL: server_url.encode(), **records})
    return load_device(vault)


def open_device(path: Path, password: str) -> Device:
    return load_device(open_vault(path, password))


def load_device(vault: Vault) -> Device:
    records = dict(vault.read_all())
    identity = SigningKey(records[IDENTITY])
    sessions = OlmSessions(identity, records)
    client = Client(bytes(identity.verify_key), records[SERVER_KEY], sessions, os.urandom)
    client.load(records)
    notebook = Notebook()
    notebook.load(records)
    quorum = parse_quorum(records.get(QUORUM, b""))
    return Device(vault, identity, records[SERVER_URL].decode(), client, notebook, quorum)

"""Kill the group server without warning, again and again, while devices send: is anything promised ever lost?

Several devices send series one after the other; at a random moment all processes of the server get SIGKILL. After each
restart every device reads what the server has for it and compares: every series that was acknowledged is there, in the
order of its counters, and no epoch ever has two checkpoints. The number of shards changes from run to run.
"""

import asyncio
import os
import random
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field

from nacl.signing import SigningKey

from bench.report import Row, write_report
from proofcast.errors import Unavailable
from proofcast.groups.identity import KeyBundle
from proofcast.groups.io.connection import Connection, connect
from proofcast.groups.io.launch import LaunchedServer, launch_server
from proofcast.groups.io.processes import Options
from proofcast.groups.packet import InboxPacket, parse_packet
from proofcast.groups.series import Envelope, Form, Message, Series

KILLS = round(200 * float(os.environ.get("PROOFCAST_BENCH_SCALE", "1")))
DEVICES = 8
SHARDS = (1, 2, 4)
KILL_S_MAX = 0.25
"""Several epochs: kills fall before, between and after the two logs' writes."""


@dataclass(slots=True)
class Sender:
    """A device, and what it was promised."""

    key: SigningKey
    acknowledged: int = 0
    seen: list[int] = field(default_factory=list)
    """Counters of its own series that came back, in order."""
    after: int = 0

    @property
    def device(self) -> bytes:
        return bytes(self.key.verify_key)

    def make_series(self, counter: int, others: list[bytes]) -> bytes:
        everybody = sorted({self.device, *others})
        envelopes = tuple(Envelope(one, Form.NORMAL, os.urandom(127)) for one in everybody)
        return Series(self.device, counter, (Message(self.device, b"\x01" + os.urandom(99), envelopes),)).encode()

    def make_keys(self) -> bytes:
        unsigned = KeyBundle(self.device, b"c" * 32, True, b"k" * 32, b"")
        return unsigned.encode() + self.key.sign(unsigned.get_signed_bytes()).signature


@dataclass(slots=True)
class Findings:
    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    disordered: int = 0
    conflicts: int = 0
    checkpoints: dict[int, bytes] = field(default_factory=dict)


async def check(sender: Sender, connection: Connection, findings: Findings) -> None:
    """Read everything new and compare it with what was promised."""
    while packets := [parse_packet(data) for data in await connection.read(sender.after)]:
        for packet in packets:
            note_checkpoint(packet.attestation.checkpoint.epoch, packet.attestation.checkpoint.encode(), findings)
            sender.after = packet.attestation.leaf.next
            if not isinstance(packet, InboxPacket):
                sender.seen += [counter for counter, _ in packet.receipts]
    findings.disordered += sender.seen != list(range(1, len(sender.seen) + 1))
    findings.lost += max(0, sender.acknowledged - len(sender.seen))


def note_checkpoint(epoch: int, checkpoint: bytes, findings: Findings) -> None:
    findings.conflicts += findings.checkpoints.setdefault(epoch, checkpoint) != checkpoint


async def send_until_killed(sender: Sender, connection: Connection, others: list[bytes]) -> None:
    with suppress(Unavailable):
        counter = (await connection.get_facts()).counter
        while True:
            counter += 1
            sender.acknowledged = await connection.send([sender.make_series(counter, others)])


async def live(server: LaunchedServer, senders: list[Sender], findings: Findings, dice: random.Random) -> None:
    """One life of the server: check, send, be killed."""
    async with asyncio.timeout(60):
        connections = [connect(server.url, server.running.server_key, sender.key) for sender in senders]
        opened = [await connection.__aenter__() for connection in connections]
        for sender, connection in zip(senders, opened, strict=True):
            if not (await connection.get_facts()).registered:
                await connection.publish(sender.make_keys())
            await check(sender, connection, findings)
        devices = [sender.device for sender in senders]
        asyncio.get_running_loop().call_later(dice.uniform(0.01, KILL_S_MAX), server.kill)
        await asyncio.gather(
            *(send_until_killed(one, it, dice.sample(devices, 3)) for one, it in zip(senders, opened, strict=True))
        )
        for connection in connections:
            await connection.__aexit__(None, None, None)
    findings.kills += 1


def run(kills: int, seed: int) -> Findings:
    print(f"seed {seed}", file=sys.stderr)
    dice, findings = random.Random(seed), Findings()
    senders = [Sender(SigningKey.generate()) for _ in range(DEVICES)]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(kills + 1):
            server = launch_server(Options(folder, shards=dice.choice(SHARDS), epoch_s=0.005))
            try:
                asyncio.run(live(server, senders, findings, dice))
            finally:
                if server.process.poll() is None:
                    server.kill()
            if number % 20 == 0:
                total = sum(sender.acknowledged for sender in senders)
                print(f"{number} kills, {total} series acknowledged, {findings.lost} lost", file=sys.stderr)
    findings.acknowledged = sum(sender.acknowledged for sender in senders)
    return findings


def measure() -> list[Row]:
    findings = run(KILLS, random.SystemRandom().randrange(2**32))
    return [
        Row("kills of the server while devices send", findings.kills, "", 200, "higher", "1, 2 and 4 shards"),
        Row("series acknowledged meanwhile", findings.acknowledged, "", None, "higher", ""),
        Row("epochs seen", len(findings.checkpoints), "", None, "higher", ""),
        Row("acknowledged series lost", findings.lost, "", 0, "lower", "issue: 0"),
        Row("devices with gaps or disorder", findings.disordered, "", 0, "lower", "issue: 0"),
        Row("epochs with two checkpoints", findings.conflicts, "", 0, "lower", "issue: 0"),
    ]


if __name__ == "__main__":
    sys.exit(write_report("kill_groups", measure()))

"""`proofcast group demo`: three people, one server, one lie, and how it is caught."""

import asyncio
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click

from proofcast.cli.connection import JSON_OPTION, Settings
from proofcast.cli.output import emit, note
from proofcast.groups.conversation import GROUP_ID_BYTES, Group, Members, Text
from proofcast.groups.io.connection import Connection, connect
from proofcast.groups.io.device import Device, create_device
from proofcast.groups.io.processes import Options
from proofcast.groups.io.sequencer import Running
from proofcast.groups.proof import Refused, Verdict, verify_proof
from proofcast.testing.groups.lies import ServerLie
from proofcast.testing.groups.serving import Plan, run_lying_server

NAMES = ("alice", "bob", "carol")
PLAN = Plan(ServerLie.DROP, victim=3, after=1)
"""Carol gets the invitation; the next message is kept from her."""
ROUNDS_MAX = 10
"""Readings until a lie is proved; question, answer and verdict take three."""


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    device: Device
    connection: Connection

    async def say(self, group: Group, text: str) -> None:
        note(f"{self.name} says: {text}")
        await self.device.send([(Text(group.group, text), group.members)], self.connection)

    async def read(self) -> None:
        known = len(self.device.notebook.incidents), len(self.device.notebook.lines)
        await self.device.sync(self.connection)
        for said in self.device.notebook.lines[known[1] :]:
            if said.sender != self.device.device_id:
                note(
                    f"{self.name} reads: [{said.group.name}] {self.device.notebook.get_name(said.sender)}: {said.text}"
                )
        for incident in self.device.notebook.incidents[known[0] :]:
            note(f"{self.name} is told: {incident}")


@asynccontextmanager
async def serve() -> AsyncIterator[Running]:
    """The lying server, on a free port."""
    running: asyncio.Future[Running] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(run_lying_server(Options("", epoch_s=0.01), PLAN, running.set_result))
    try:
        yield await running
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def gather_people(stack: AsyncExitStack, running: Running, folder: Path) -> list[Person]:
    """Three devices that know each other."""
    people = []
    for name in NAMES:
        device = create_device(folder / name, "demo", running.urls[0], running.server_key)
        stack.enter_context(device.vault)
        connection = await stack.enter_async_context(connect(running.urls[0], running.server_key, device.identity))
        await device.sync(connection)
        people.append(Person(name, device, connection))
    for person in people:
        person.device.notebook.contacts = {other.name: other.device.device_id for other in people}
    return people


async def play(folder: Path) -> tuple[Verdict, str, int]:
    """The verdict that a stranger reaches, why a damaged proof is refused, and the proof's length."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(serve())
        alice, bob, carol = await gather_people(stack, running, folder)
        members = tuple(sorted(person.device.device_id for person in (alice, bob, carol)))
        family = Group(secrets.token_bytes(GROUP_ID_BYTES), "family", members)
        note("alice makes the group family with bob and carol")
        await alice.device.send([(Members(family), members)], alice.connection)
        await bob.read()
        await carol.read()
        await alice.say(family, "dinner at eight")
        await bob.read()
        await carol.read()
        note("the server has kept that message from carol, and signed that there was none")
        await bob.say(family, "I bring wine")
        for _ in range(ROUNDS_MAX):
            for person in (carol, bob, alice):
                await person.read()
            if carol.device.get_proofs():
                break
        proof = carol.device.get_proofs()[-1]
        return verify_proof(proof, running.server_key), refuse_damaged(proof, running.server_key), len(proof)


def refuse_damaged(proof: bytes, server_key: bytes) -> str:
    """What the verifier says of a proof with one bit flipped."""
    try:
        verify_proof(proof[:200] + bytes([proof[200] ^ 1]) + proof[201:], server_key)
    except Refused as error:
        return str(error)
    raise AssertionError("a damaged proof was accepted")


@click.command(params=[JSON_OPTION])
@click.pass_obj
def demo(settings: Settings) -> None:
    """Watch a server lie to one of three people, and be convicted by its own signatures."""
    with tempfile.TemporaryDirectory() as folder:
        verdict, refusal, length = asyncio.run(play(Path(folder)))
    record = {"lie": verdict.lie, "sentence": verdict.sentence, "bytes": length, "damaged": refusal}
    text = f"\na stranger, offline, with the server's key and {length} bytes of proof: {verdict.sentence}"
    emit(settings.as_json, record, f"{text}\nwith one bit of the proof flipped: {refusal}")

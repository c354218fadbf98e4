"""Forty real libp2p hosts in one process: paced and burst deliveries, latency, memory."""

import gc
import logging
import os
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

import trio

from bench.processes import read_peak_kb
from bench.report import Row
from proofcast.errors import Unavailable
from proofcast.overlay.identity import Contact, Ed25519Signer, verify_ed25519
from proofcast.overlay.io.host import Host, open_host
from proofcast.overlay.outputs import Active, Deliver, Output
from proofcast.overlay.peer import Peer
from proofcast.overlay.settings import Settings
from proofcast.routing.attributes import parse_attributes
from proofcast.routing.predicate import parse_predicate

HOSTS = max(4, int(40 * float(os.environ.get("PROOFCAST_BENCH_SCALE", "1"))))
PACED_PER_S = 300
PACED_EVENTS = 75
BURST_EVENTS = 200
SETTLE_S_MAX = 120.0
QUIET_SHARE = 0.10
"""Of a core over a second: hosts that have just met spend seconds on identifying each other and on filter tables."""
CONTACTS = 8
GREETINGS_MAX = 10
ANCHOR = "no reference on one machine"
NEWS = parse_attributes("news T")


@dataclass(slots=True)
class Fleet:
    hosts: list[Host] = field(default_factory=list)
    active: int = 0
    delays: list[float] = field(default_factory=list)

    def note(self, output: Output) -> None:
        if isinstance(output, Active):
            self.active += 1
        elif isinstance(output, Deliver):
            self.delays.append(time.time() - float(output.event.payload))

    def publish(self, index: int) -> None:
        host = self.hosts[index % len(self.hosts)]
        now = time.time()
        host.carry_out(host.peer.publish(NEWS, str(now).encode(), now)[1])


def make_peer(contact: Contact, signer: Ed25519Signer) -> Peer:
    settings = Settings(bucket_contacts=CONTACTS)
    entropy = int.from_bytes(signer.public_key)
    return Peer(contact, signer, verify_ed25519, settings, session=time.time_ns(), entropy=entropy, now=time.time())


async def start_hosts(fleet: Fleet, stack: AsyncExitStack) -> None:
    for number in range(HOSTS):
        seed = number.to_bytes(32)
        host = await stack.enter_async_context(open_host(seed, "/ip4/127.0.0.1/tcp/0", make_peer, fleet.note))
        fleet.hosts.append(host)
        if number:
            contact = await greet_patiently(host, fleet.hosts[number // 2].peer.seat.contact.address)
            host.carry_out(host.peer.join([contact], time.time()))


async def greet_patiently(host: Host, address: str) -> Contact:
    """Forty hosts that start on one core keep each other waiting."""
    for _ in range(GREETINGS_MAX):
        with suppress(Unavailable):
            return await host.greet(address)
    return await host.greet(address)


async def wait_until(fleet: Fleet, count: int) -> float:
    """Seconds until so many deliveries have come."""
    began = time.time()
    with trio.move_on_after(SETTLE_S_MAX):
        while len(fleet.delays) < count:
            await trio.sleep(0.005)
    return time.time() - began


async def wait_until_quiet() -> None:
    with trio.move_on_after(SETTLE_S_MAX):
        share = 1.0
        while share > QUIET_SHARE:
            began, cpu = time.time(), time.process_time()
            await trio.sleep(1)
            share = (time.process_time() - cpu) / (time.time() - began)


async def run_fleet() -> list[Row]:
    before_kb = read_peak_kb()
    fleet = Fleet()
    async with AsyncExitStack() as stack:
        await start_hosts(fleet, stack)
        for host in fleet.hosts:
            host.carry_out(host.peer.subscribe(parse_predicate("news T"), time.time()))
        with trio.move_on_after(SETTLE_S_MAX):
            while fleet.active < HOSTS:
                await trio.sleep(0.05)
        for index in range(HOSTS):  # so that every connection exists before anything is measured
            fleet.publish(index)
        await wait_until(fleet, HOSTS * HOSTS)
        await wait_until_quiet()
        gc.collect()
        gc.freeze()  # what forty hosts hold is not looked through again while they are measured
        return [*await measure_paced(fleet), *await measure_burst(fleet), measure_memory(before_kb)]


async def measure_paced(fleet: Fleet) -> list[Row]:
    fleet.delays.clear()
    cpu = time.process_time()
    for index in range(PACED_EVENTS):
        fleet.publish(index)
        await trio.sleep(HOSTS / PACED_PER_S)
    await wait_until(fleet, PACED_EVENTS * HOSTS)
    cpu = time.process_time() - cpu
    ordered = sorted(fleet.delays)
    p99 = 1000 * ordered[int(len(ordered) * 0.99)] if ordered else float("inf")
    missing = PACED_EVENTS * HOSTS - len(ordered)
    return [
        Row(f"{HOSTS} hosts: p99 at 300 deliveries/s", round(p99, 1), "ms", 150, "lower", ANCHOR),
        Row(f"{HOSTS} hosts: missing at 300 deliveries/s", missing, "events", 0, "lower", ANCHOR),
        Row(
            f"{HOSTS} hosts: CPU of a paced delivery",
            round(1e3 * cpu / max(1, len(ordered)), 2),
            "ms",
            None,
            "lower",
            ANCHOR,
        ),
    ]


async def measure_burst(fleet: Fleet) -> list[Row]:
    fleet.delays.clear()
    cpu = time.process_time()
    for index in range(BURST_EVENTS):
        fleet.publish(index)
    await wait_until(fleet, BURST_EVENTS * HOSTS)
    rate = len(fleet.delays) / (time.process_time() - cpu)
    missing = BURST_EVENTS * HOSTS - len(fleet.delays)
    return [
        Row(
            f"{HOSTS} hosts: deliveries in a burst per CPU second", round(rate), "1/s", 2_000, "higher", "no reference"
        ),
        Row(f"{HOSTS} hosts: missing in a burst", missing, "events", 0, "lower", ANCHOR),
    ]


def measure_memory(before_kb: int) -> Row:
    each_mb = (read_peak_kb() - before_kb) / 1024 / HOSTS
    return Row(f"{HOSTS} hosts: memory of each", round(each_mb, 2), "MB", 2, "lower", "reference 1.8 MB")


def measure_hosts() -> list[Row]:
    logging.disable(logging.CRITICAL)  # py-libp2p logs every dial that loses a race
    return trio.run(run_fleet)

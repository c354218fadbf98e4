"""The scenarios of the reference on simulated links with the real protocol code, measured."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.processes import read_peak_kb
from proofcast.overlay.settings import Settings
from proofcast.testing.overlay.links import Link
from proofcast.testing.overlay.network import Network, make_network

LINK = Link(0.010, 0.010, bits_per_s=float(1 << 20))
"""10 ms and 2^20 bit/s on each link, with queues."""
GROUPS = (
    ("portugal T/surf T", "ipfs T"),
    ("ipfs T", "portugal T/soccer T"),
    ("ipfs T", "surf T/bali T"),
    ("ipfs T", "surf T/bali T/trip T/price R 1000 1500"),
    ("ipfs T", "surf T/trip T/price R 1000 2000"),
    ("ipfs T", "surf T/trip T/price R 1000 1400"),
)
EVENTS = ("ipfs T", "portugal T/surf T", "surf T/bali T/trip T/price R 1050 1050", "ipfs T")
STAGES = (
    "surf T/bali T/price R 1000 1500",
    "portugal T/surf T",
    "ipfs T",
    "IST T",
)
STAGE_EVENTS = ("surf T/bali T/price R 1200 1200", "portugal T/surf T", "ipfs T", "IST T")


@dataclass(frozen=True, slots=True)
class Measured:
    expected: int
    missing: int
    twice: int
    redundant: float
    """Share of the events' arrivals at a peer that were of no use there."""
    event_ms: float
    event_ms_max: float
    subscription_ms: float
    messages: int
    cpu_s: float
    memory_mb: float
    hops: float


def subscribe_groups(network: Network, peers: int) -> None:
    for index in range(peers):
        for predicate in GROUPS[index % len(GROUPS)]:
            network.subscribe(index, predicate)


def publish_events(network: Network, first: int) -> None:
    for place, attributes in enumerate(EVENTS):
        network.publish(first + place, attributes)


def play_normal(network: Network) -> None:
    subscribe_groups(network, 56)
    network.run(1)
    publish_events(network, 56)
    network.run(3)


def play_sub_burst(network: Network) -> None:
    subscribe_groups(network, 56)
    network.run(1)
    for index in range(56):
        network.subscribe(index, f"irrelevant{index} T")
        network.subscribe(index, f"unrelated T/number R {index} {index + 1}")
    publish_events(network, 56)
    network.run(3)


def play_event_burst(network: Network) -> None:
    subscribe_groups(network, 56)
    network.run(1)
    publish_events(network, 56)
    for index in range(56):
        network.publish(index, EVENTS[index % 3])
    network.run(5)


def play_fault(network: Network) -> None:
    subscribe_groups(network, 56)
    network.run(1)
    network.crash(5)
    network.crash(11)
    network.run(0.1)
    publish_events(network, 56)
    network.run(30)


def play_fast(network: Network) -> None:
    """The same subscribers in groups of the publishers."""
    groups = ("ipfs T", "portugal T/surf T", "surf T/trip T")
    for place, attributes in enumerate(groups):
        network.open_group(56 + place, attributes)
    for index in range(56):
        first, second = GROUPS[index % len(GROUPS)]
        for predicate in (first, second):
            group = 0 if predicate == "ipfs T" else 1 if predicate == "portugal T/surf T" else 2
            if predicate != "portugal T/soccer T":
                network.join_group(
                    index, 56 + group, ("ipfs T", "portugal T/surf T", "surf T/trip T")[group], predicate
                )
    network.run(3)
    for place, attributes in enumerate(EVENTS[:3]):
        network.publish_to_groups(56 + place, attributes)
    network.run(3)


PLAYS: dict[str, Callable[[Network], None]] = {
    "Normal": play_normal,
    "SubBurst": play_sub_burst,
    "EventBurst": play_event_burst,
    "Fault": play_fault,
}


def measure(play: Callable[[Network], None], settings: Settings, seed: int = 1, peers: int = 60) -> Measured:
    began, memory = time.process_time(), read_peak_kb()
    network = make_network(peers, seed, LINK, settings)
    play(network)
    return summarise(network, time.process_time() - began, memory)


def summarise(network: Network, cpu_s: float, memory_before_kb: int) -> Measured:
    oracle = network.oracle
    verdict = oracle.judge(network.get_present())
    waits = [one.active - one.asked for one in oracle.subscriptions if one.active is not None]
    times = [one.time - oracle.publications[one.event_id].time for one in oracle.deliveries]
    hops = [network.hops.get((one.event_id, one.peer), 0) for one in oracle.deliveries]
    useless = sum(node.peer.seat.counts["redundant"] for node in network.nodes)
    memory_kb = read_peak_kb() - memory_before_kb
    return Measured(
        expected=verdict.expected,
        missing=len(verdict.missing),
        twice=verdict.twice,
        redundant=useless / network.event_arrivals,
        event_ms=1000 * sum(times) / len(times),
        event_ms_max=1000 * max(times),
        subscription_ms=1000 * sum(waits) / len(waits),
        messages=network.messages,
        cpu_s=cpu_s,
        memory_mb=memory_kb / 1024,
        hops=sum(hops) / len(hops),
    )


@dataclass(frozen=True, slots=True)
class Stage:
    event_ms: float
    subscription_ms: float
    missing: int


def measure_replication(backups: int, seed: int = 1, peers: int = 75, publishers: int = 4) -> list[Stage]:
    """One more subscription for each subscriber at every stage, then one event from each publisher."""
    settings = Settings(backups=backups, bucket_contacts=10)
    network = make_network(peers, seed, LINK, settings)
    return [measure_stage(network, stage, peers, publishers) for stage in range(len(STAGES))]


def measure_stage(network: Network, stage: int, peers: int, publishers: int) -> Stage:
    oracle = network.oracle
    asked, heard = len(oracle.subscriptions), len(oracle.deliveries)
    for index in range(peers - publishers):
        network.subscribe(index, STAGES[stage])
    network.run(6)
    for index in range(peers - publishers, peers):
        network.publish(index, STAGE_EVENTS[stage])
    network.run(4)
    waits = [one.active - one.asked for one in oracle.subscriptions[asked:] if one.active is not None]
    times = [one.time - oracle.publications[one.event_id].time for one in oracle.deliveries[heard:]]
    missing = len(oracle.judge(network.get_present()).missing)
    return Stage(1000 * sum(times) / len(times), 1000 * sum(waits) / len(waits), missing)


@dataclass(frozen=True, slots=True)
class Regional:
    event_ms: float
    hops_max: int
    publisher_sent: int
    missing: int


def make_regional(seed: int) -> Network:
    """Three regions of twenty, 10 ms inside and 100 ms between them."""
    network = Network(seed, Link(0.010, 0.100, bits_per_s=float(1 << 20)))
    for index in range(60):
        network.add_peer(Settings(region=f"region{index % 3}", capacity=20, bucket_contacts=10))
    network.settle()
    return network


def measure_regional_fast(seed: int = 1) -> Regional:
    network = make_regional(seed)
    network.open_group(0, "news T")
    for index in range(1, 60):
        network.join_group(index, 0, "news T", "news T")
    network.run(3)
    sent = network.nodes[0].sent
    network.publish_to_groups(0, "news T")
    network.run(5)
    return judge_regional(network, sent)


def measure_regional_scout(seed: int = 1) -> Regional:
    network = make_regional(seed)
    for index in range(1, 60):
        network.subscribe(index, "news T")
    network.run(3)
    sent = network.nodes[0].sent
    network.publish(0, "news T")
    network.run(5)
    return judge_regional(network, sent)


def judge_regional(network: Network, sent_before: int) -> Regional:
    oracle = network.oracle
    times = [one.time - oracle.publications[one.event_id].time for one in oracle.deliveries]
    hops = [network.hops.get((one.event_id, one.peer), 0) for one in oracle.deliveries]
    missing = len(oracle.judge(network.get_present()).missing)
    return Regional(1000 * sum(times) / len(times), max(hops), network.nodes[0].sent - sent_before, missing)

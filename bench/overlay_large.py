"""Ten thousand simulated peers under churn with acknowledgements, and how routes grow to a hundred thousand."""

import gc
import os
import random
import time
from bisect import bisect_left
from dataclasses import dataclass

from proofcast.overlay.identity import KEY_BITS, compute_key
from proofcast.overlay.settings import Settings
from proofcast.testing.overlay.links import Link
from proofcast.testing.overlay.network import Network, make_network

SCALE = float(os.environ.get("PROOFCAST_BENCH_SCALE", "1"))
PEERS = int(10_000 * SCALE)
TOPICS = 1_000
SUBSCRIPTIONS = 2
EVENTS = int(410 * SCALE)
EVENTS_PER_S = 5
CHURN_PER_H = 0.10
DELIVERIES = int(100_000 * SCALE**2)
ROUTE_SIZES = (100, 1_000, 10_000, 100_000)
ROUTES = 300


@dataclass(frozen=True, slots=True)
class Large:
    deliveries: int
    missing: int
    twice: int
    cpu_s: float
    hops: float
    messages: int
    repaired: int


def run_large(*, redirect: bool, peers: int = PEERS, events: int = EVENTS, seed: int = 1) -> Large:
    """Subscribers of Zipf-like topics, publishers at random, peers leaving and coming all the time."""
    gc.collect()
    began = time.process_time()
    dice = random.Random(seed)
    network = make_network(peers, seed, Link(0.020, 0.020), Settings(redirect=redirect, resend_s=5))
    gc.freeze()
    for node in network.nodes:
        for _ in range(SUBSCRIPTIONS):
            network.subscribe(node.index, draw_predicate(dice))
    network.run(10)
    for _ in range(events):
        network.publish(draw_present(network, dice), draw_attributes(dice))
        network.run(1 / EVENTS_PER_S)
        if dice.random() < peers * CHURN_PER_H / 3600 / EVENTS_PER_S:
            churn(network, dice)
    network.run(60)
    cpu_s = time.process_time() - began
    verdict = network.oracle.judge(network.get_present())
    hops = [network.hops[one.event_id, one.peer] for one in network.oracle.deliveries if one.peer < peers]
    gc.unfreeze()
    return Large(
        len(network.oracle.deliveries),
        len(verdict.missing),
        verdict.twice,
        cpu_s,
        sum(hops) / len(hops),
        network.messages,
        sum(node.peer.seat.counts["repaired"] for node in network.nodes),
    )


def draw_topic(dice: random.Random) -> str:
    """Few topics are wanted by many."""
    return f"topic{int(TOPICS ** dice.random())}"


def draw_predicate(dice: random.Random) -> str:
    topic, low = draw_topic(dice), dice.randint(0, 80)
    return f"{topic} T/{topic}.price R {low} {low + 20}" if dice.random() < 0.5 else f"{topic} T"


def draw_attributes(dice: random.Random) -> str:
    topic = draw_topic(dice)
    return f"{topic} T/{topic}.price V {dice.randint(0, 100)}"


def draw_present(network: Network, dice: random.Random) -> int:
    while True:
        index = dice.randrange(len(network.nodes))
        if network.nodes[index].is_up:
            return index


def churn(network: Network, dice: random.Random) -> None:
    """One peer vanishes and another, new one, enters and subscribes."""
    network.crash(draw_present(network, dice))
    newcomer = network.add_peer()
    network.join(newcomer.index)
    network.subscribe(newcomer.index, draw_predicate(dice))


def measure_routes(size: int, seed: int = 1) -> float:
    """Mean hops of greedy routes among so many peers; each table is drawn when a route comes by."""
    dice = random.Random(seed)
    positions = sorted(dice.getrandbits(KEY_BITS) for _ in range(size))
    lengths = [count_hops(positions, dice, compute_key(f"key{number}")) for number in range(ROUTES)]
    return sum(lengths) / len(lengths)


def count_hops(positions: list[int], dice: random.Random, key: int, bucket: int = 20) -> int:
    position, hops = dice.choice(positions), 0
    while (nearer := find_nearer(positions, dice, position, key, bucket)) is not None:
        position, hops = nearer, hops + 1
    return hops


def find_nearer(positions: list[int], dice: random.Random, position: int, key: int, bucket: int) -> int | None:
    """The best of `bucket` random peers out of the part of the key space where the key is and this peer is not."""
    for bits in range((position ^ key).bit_length(), 0, -1):
        first = (position >> bits - 1 ^ 1) << bits - 1
        low, high = bisect_left(positions, first), bisect_left(positions, first + (1 << bits - 1))
        places = range(low, high) if high - low <= bucket else dice.sample(range(low, high), bucket)
        best = min((positions[place] for place in places), key=lambda other: other ^ key, default=None)
        if best is not None and best ^ key < position ^ key:
            return best
    return None

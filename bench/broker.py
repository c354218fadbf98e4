"""The broker's figures: how fast, to how many, and what a client that believes nobody can check.

    python -m bench.broker [ROW ...]        all rows, or those named; PROOFCAST_BENCH_SCALE=0.05 for a quick look

Rates are deliveries per second of CPU time of the broker, so that readers beside it do not count; delays are of a
clock. Readers are plain sockets that count and check nothing, except where the SDK is measured.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure
from numpy import percentile

from bench.broker_latency import measure_delays_ms
from bench.broker_load import Readers, fill, get_memory_mb, run_broker
from bench.broker_webhooks import measure_webhooks
from bench.report import RESULTS, Row, write_report
from proofcast.broker.io.hub import Hub
from proofcast.broker.selection import Selection
from proofcast.broker.start import Newest
from proofcast.chain.evidence import verify_evidence
from proofcast.client.io.http import Client
from proofcast.event import Finality
from proofcast.onchain.events import Published
from proofcast.testing.broker.publications import PUBLISHER, encode_published
from proofcast.testing.broker.running import ChainFeed
from proofcast.testing.broker.serving import TOPICS
from proofcast.testing.feed.publishing import PublishingChain
from proofcast.testing.feed.story import Story

SCALE = float(os.environ.get("PROOFCAST_BENCH_SCALE", "1"))
EVENTS_PER_BLOCK = 100


def scale(count: int, least: int = 1) -> int:
    return max(least, int(count * SCALE))


# --- server-sent events


def measure_stream(folder: Path) -> list[Row]:
    """Every event to 200 connections, as fast as it goes."""
    story = fill(folder, EVENTS_PER_BLOCK)
    connections, blocks = 200, scale(40, 3)
    with run_broker(folder) as broker:
        readers = Readers(broker)
        readers.connect(connections, "start=newest")
        began_s, cpu_s = time.monotonic(), broker.measure_cpu_s()
        for _ in range(blocks):
            story.publish(EVENTS_PER_BLOCK)
        wanted = connections * blocks * EVENTS_PER_BLOCK
        readers.read_until(lambda: readers.deliveries >= wanted)
        cpu_s, wall_s = broker.measure_cpu_s() - cpu_s, time.monotonic() - began_s
        readers.close()
    anchor = (
        f"1 kB events, {connections} connections; {wanted / wall_s:,.0f}/s by the clock, readers on the same machine"
    )
    return [Row("SSE deliveries per CPU second of the broker", round(wanted / cpu_s), "/s", 60_000, "higher", anchor)]


def measure_fan_out(folder: Path) -> list[Row]:
    """From the commit of one event to the last of 1,000 connections that has it."""
    story, rounds, delays_ms = fill(folder, EVENTS_PER_BLOCK), scale(20, 3), list[float]()
    connections = scale(1_000, 50)
    with run_broker(folder) as broker:
        readers = Readers(broker)
        readers.connect(connections, "start=newest")
        for number in range(1, rounds + 1):
            story.publish(1)
            committed_s = time.monotonic()
            readers.read_until(lambda: readers.deliveries >= connections * number)  # noqa: B023 - used at once
            delays_ms.append(1e3 * (max(reader.last_s for reader in readers.readers) - committed_s))
        readers.close()
    anchor = f"committed -> the last of {connections:,} connections has it, median of {rounds}"
    return [Row("one event to 1,000 connections", round(median(delays_ms), 1), "ms", 50, "lower", anchor)]


def measure_replay(folder: Path) -> list[Row]:
    events = scale(100_000, 2_000)
    fill(folder, events)
    with run_broker(folder) as broker:
        readers, cpu_s = Readers(broker), broker.measure_cpu_s()
        began_s = time.monotonic()
        readers.connect(1, "start=oldest")
        readers.read_until(lambda: readers.deliveries >= events)
        cpu_s, wall_s = broker.measure_cpu_s() - cpu_s, time.monotonic() - began_s
        readers.close()
    anchor = f"{events:,} stored events of 1 kB to one subscriber, by the clock; {events / cpu_s:,.0f} per CPU second"
    return [Row("replay, raw", round(events / wall_s), "/s", 60_000, "higher", anchor)]


# --- checked by the reader


def measure_verified(folder: Path) -> list[Row]:
    """Fifty events to a transaction, ten transactions to a block, every one checked by the SDK."""
    chain = PublishingChain(1, topics=4, transactions=10, events_each=50, payload_length=1_000)
    chain.mine(1 + scale(40, 4))
    wanted = sum(chain.published[chain.head.hash].values())
    with ChainFeed(chain, folder) as feed:
        feed.follow()
        with run_broker(folder) as broker, Client(broker.url, topics=f"0x{TOPICS.hex()}") as client:
            cpu_s, began_s = time.process_time(), time.monotonic()
            for number, _ in enumerate(client.subscribe(start="oldest"), start=1):
                if number == wanted:
                    break
            cpu_s, wall_s = time.process_time() - cpu_s, time.monotonic() - began_s
    anchor = f"{wanted:,} events of 1 kB, per CPU second of the SDK; {wanted / wall_s:,.0f}/s by the clock"
    return [Row("replay, verified by the SDK", round(wanted / cpu_s), "/s", 5_000, "higher", anchor)]


def measure_evidence(folder: Path) -> list[Row]:
    """Checking one event offline, as a function and as a command."""
    chain = PublishingChain(1, topics=4, transactions=50, events_each=4, payload_length=1_000)
    chain.mine(3)
    with ChainFeed(chain, folder) as feed:
        feed.follow()
        with run_broker(folder) as broker, Client(broker.url, topics=f"0x{TOPICS.hex()}") as client:
            subscription = client.subscribe(start="oldest")
            event = next(iter(subscription))
            event_id = "/".join(
                (str(event.position.chain_id), f"{event.position.block_number:012}", f"{event.position.log_index:06}")
            )
            data = client.get_evidence(
                f"{event_id}/{event.position.block_hash.hex()}/apply", trust=f"0x{chain.head.hash.hex()}"
            )
    file = folder / "event.evidence"
    file.write_bytes(data)
    checks = [measure_cpu_ms(lambda: verify_evidence(data, chain.head.hash)) for _ in range(9)]
    command = [
        sys.executable,
        "-m",
        "proofcast.cli",
        "event",
        "verify",
        str(file),
        "--trust",
        f"0x{chain.head.hash.hex()}",
    ]
    runs = [measure_command_ms(command) for _ in range(5)]
    return [
        Row("evidence checked, the function", round(median(checks), 2), "ms", 50, "lower", f"{len(data):,} bytes"),
        Row("evidence checked, the command", round(median(runs), 1), "ms", 500, "lower", "process start included"),
    ]


def measure_cpu_ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return 1e3 * (time.process_time() - began)


def measure_command_ms(command: Sequence[str]) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return 1e3 * (time.monotonic() - began)


# --- very many


def measure_many(folder: Path) -> list[Row]:
    """As many topics and sleeping subscribers, one to each, in one process; without a socket to each of them."""
    many = scale(100_000, 1_000)
    few_ms, few_mb = asyncio.run(wake_subscribers(folder / "few", 10))
    many_ms, many_mb = asyncio.run(wake_subscribers(folder / "many", many))
    anchor = f"{many:,} topics, a subscription to each; with 10 it is {few_ms:.2f} ms and {few_mb:.0f} MB"
    return [
        Row("100,000 topics and subscriptions, memory", round(many_mb), "MB", 1_500, "lower", anchor),
        Row("their delay against that of 10", round(many_ms / few_ms, 3), "times", 1.2, "lower", anchor),
    ]


class ManyTopics(Story):
    def publish(self, topic: int, sequence: int) -> None:
        self.publish_all([(topic, sequence)])

    def publish_all(self, places: Sequence[tuple[int, int]]) -> None:
        """One block with an event for each topic and sequence."""
        logs = [
            encode_published(Published(topic.to_bytes(32), sequence, bytes(32), PUBLISHER, b"x" * 1_000))
            for topic, sequence in places
        ]
        self.adopt([self.make_block(self.path[-1], logs)])


async def wake_subscribers(folder: Path, count: int) -> tuple[float, float]:
    """Median delay of an event to the one who waits for it, beginning when the hub looks; and memory."""
    story, hub = ManyTopics(folder, 1), Hub(folder, TOPICS)
    story.publish(0, 1)
    for level in Finality:
        hub.advance(level)
    arrivals: asyncio.Queue[float] = asyncio.Queue()
    tasks = [asyncio.create_task(note_arrivals(hub, topic, arrivals)) for topic in range(count)]
    for _ in range(count):
        await arrivals.get()
    delays_ms = []
    for number in range(50):
        story.publish((number * 7_919) % count, 2 + number // count)
        began_s = time.perf_counter()
        for level in Finality:
            hub.advance(level)
        delays_ms.append(1e3 * (await arrivals.get() - began_s))
    memory_mb = get_memory_mb()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return median(delays_ms), memory_mb


async def note_arrivals(hub: Hub, topic: int, arrivals: asyncio.Queue[float]) -> None:
    """Once when it waits, then for every event."""
    notices = 0
    async for batch in hub.subscribe(Selection(topic=topic.to_bytes(32)), Newest(), Finality.LATEST):
        notices += not batch.entries
        if batch.entries or notices == 2:
            arrivals.put_nowait(time.perf_counter())


# --- through everything


def measure_latency(folder: Path) -> list[Row]:
    delays_ms = measure_delays_ms(folder, warm_up=scale(90, 6), measured=scale(240, 10))
    draw(delays_ms)
    p50, p99 = (round(float(percentile(delays_ms, at)), 1) for at in (50, 99))
    anchor = "block available at the node -> verified, through Spark -> the SSE subscriber has its event"
    return [
        Row("block to subscriber, p50", p50, "ms", 200, "lower", anchor),
        Row("block to subscriber, p99", p99, "ms", 400, "lower", anchor),
    ]


def draw(delays_ms: list[float]) -> None:
    figure = Figure(figsize=(7, 2.8))
    axes = figure.subplots()
    axes.plot(delays_ms, ".", markersize=3)
    axes.set(xlabel="block", ylabel="ms to the subscriber", ylim=(0, None))
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "broker.svg")


MEASURES: dict[str, Callable[[Path], list[Row]]] = {
    "stream": measure_stream,
    "fan-out": measure_fan_out,
    "webhooks": lambda folder: measure_webhooks(folder, scale(20_000, 500)),
    "replay": measure_replay,
    "verified": measure_verified,
    "evidence": measure_evidence,
    "many": measure_many,
    "latency": measure_latency,
}


def main(names: Sequence[str]) -> int:
    rows: list[Row] = []
    for name in names or MEASURES:
        with tempfile.TemporaryDirectory(prefix="proofcast-") as folder:
            rows += MEASURES[name](Path(folder))
        print(f"{name} measured", file=sys.stderr)
    return write_report("broker" if not names else "broker-part", rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

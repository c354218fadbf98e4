"""From a block that a node has to the subscriber that has its event: node, follower, Spark, outbox, broker, SSE."""

import threading
import time
from pathlib import Path

from bench.broker_load import Reader, Readers, run_broker, wait_until
from proofcast.chain.io.source import open_source
from proofcast.chain.segment import BlockId
from proofcast.feed.io.follower import FeedFollower
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.outbox import OutboxSink
from proofcast.pipeline.io.session import build_session
from proofcast.pipeline.io.sink import TableSink
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.follow import follow
from proofcast.testing.chain import SimulatedNode
from proofcast.testing.feed.publishing import PublishingChain

BLOCK_EVERY_S = 0.5
POLL_S = 0.02


def measure_delays_ms(folder: Path, warm_up: int, measured: int) -> list[float]:
    """One event to a block; of every block that was measured, in their order."""
    chain = PublishingChain(2026, topics=1, transactions=1, events_each=1, payload_length=1_000)
    feed, available, ended = folder / "feed", list[float](), threading.Event()
    with SimulatedNode(chain) as node:
        follower = FeedFollower(open_source(node.url), feed, BlockId(0, chain.head.hash))
        spark = build_session("local[2]", {"spark.driver.memory": "1g"})
        outbox = OutboxSink(feed, chain.chain_id, lambda end: None)
        tables = TableSink(spark, Tables(str(folder / "tables")), [get_own_abi()], lambda end: None)
        queries = follow(spark, str(feed), outbox, tables, {}, str(folder / "scratch"))
        poll = threading.Thread(target=follower.follow, args=(ended.is_set, lambda: time.sleep(POLL_S)))
        poll.start()
        try:
            chain.mine()  # the topics are created
            wait_until(lambda: outbox.end.sequence > 0)
            with run_broker(feed) as broker:
                readers = Readers(broker)
                readers.connect(1, "start=newest")
                arrivals = [read_one(node, readers, available) for _ in range(warm_up + measured)]
                readers.close()
        finally:
            ended.set()
            poll.join()
            queries.stop()
            spark.stop()
    delays_ms = [1e3 * (end - begin) for begin, end in zip(available, arrivals, strict=True)]
    return delays_ms[warm_up:]


def read_one(node: SimulatedNode, readers: Readers, available: list[float]) -> float:
    """Mine a block and wait for its event; then for the next block's time."""
    reader: Reader = readers.readers[0]
    wanted = reader.deliveries + 1
    node.chain.mine()
    available.append(time.monotonic())
    readers.read_until(lambda: reader.deliveries >= wanted)
    time.sleep(max(0.0, BLOCK_EVERY_S - (time.monotonic() - available[-1])))
    return reader.last_s

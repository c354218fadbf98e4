"""Brokers for tests: over a feed that lives through whatever a simulated chain does."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from proofcast.broker.io.http import build_runner
from proofcast.chain.io.source import open_source
from proofcast.chain.segment import BlockId
from proofcast.ethereum.header import compute_hash
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.testing.chain import ChainSimulator, SimulatedNode
from proofcast.testing.feed.plain import match_steps
from proofcast.testing.feed.publishing import TOPICS_ADDRESS


class RunningBroker:
    """A broker in a thread of its own, so that a plain loop can read it; `stop` leaves its readers without a word."""

    def __init__(self, folder: Path, topics_address: bytes = TOPICS_ADDRESS) -> None:
        self._folder, self._topics_address = folder, topics_address
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._runner = build_runner(self._folder, self._topics_address)
        self._loop.run_until_complete(self._open())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._runner.cleanup())
        self._loop.close()

    async def _open(self) -> None:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


@contextmanager
def run_broker(folder: Path, topics_address: bytes = TOPICS_ADDRESS) -> Iterator[RunningBroker]:
    broker = RunningBroker(folder, topics_address)
    try:
        yield broker
    finally:
        broker.stop()


class NodeFeed:
    """A feed that follows a node from behind a block on, whenever it is told to."""

    def __init__(self, url: str, folder: Path, first: int = 0) -> None:
        self.folder, source = folder, open_source(url)
        checkpoint = BlockId(first, compute_hash(source.get_headers(first, first)[0]))
        self._follower = FeedFollower(source, folder, checkpoint)
        self._journal, self._outbox = Journal(folder), Outbox(folder)
        self._journal.acknowledge("outbox", 0)

    def follow(self) -> None:
        """Journal everything that is new, and its logs."""
        while self._follower.poll():
            pass
        reached, end = -1, self._journal.read_state().sequence
        while reached < end:
            reached = match_steps(self._journal, self._outbox)
            self._journal.acknowledge("outbox", reached)

    def acknowledge(self, reader: str, sequence: int) -> None:
        self._journal.acknowledge(reader, sequence)


class ChainFeed(NodeFeed):
    """The same for a simulated chain, served over HTTP."""

    def __init__(self, chain: ChainSimulator, folder: Path, first: int = 0) -> None:
        self.chain, self.node = chain, SimulatedNode(chain)
        self.node.__enter__()
        super().__init__(self.node.url, folder, first)

    def __enter__(self) -> "ChainFeed":
        return self

    def __exit__(self, *error: object) -> None:
        self.node.__exit__(None, None, None)

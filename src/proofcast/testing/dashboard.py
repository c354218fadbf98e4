"""A stage for the dashboard: a development chain, a feed of it without Spark, and a broker on a port."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from ipaddress import ip_network
from pathlib import Path

from aiohttp import web

from proofcast.broker.io.http import Settings, build_runner
from proofcast.broker.io.routes.dashboard import DASHBOARD
from proofcast.broker.io.routes.peers import PEERS
from proofcast.chain.io.source import open_source
from proofcast.chain.segment import BlockId
from proofcast.ethereum.header import compute_hash
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.onchain import topics
from proofcast.onchain.events import TopicCreated
from proofcast.onchain.request import ask
from proofcast.testing.feed.plain import match_steps
from proofcast.testing.onchain import Playground, run_playground

PUBLISH_GAS = 1_000_000
SETTINGS = Settings(allowed_receivers=(ip_network("127.0.0.1"),), ladder_s=())
"""What a receiver refuses is given up at once, so that there is a dead letter to see."""


@dataclass(slots=True)
class Stage:
    playground: Playground
    folder: Path
    url: str
    follower: FeedFollower

    def create_topic(self, name: str) -> bytes:
        receipt = self.playground.send(ask(self.playground.topics, topics.create(name)))
        return receipt.get_event(self.playground.topics, TopicCreated).topic

    def publish(self, topic: bytes, payload: bytes) -> None:
        call = topics.publish(topic, payload, payee=self.playground.chain.accounts[0].address)
        self.playground.send(ask(self.playground.topics, call, PUBLISH_GAS))
        self.show()

    def show(self) -> None:
        """Have the broker see what the chain has now."""
        while self.follower.poll():
            pass
        match_steps(Journal(self.folder), Outbox(self.folder))

    def reorganize(self, depth: int) -> None:
        """Replace the newest blocks by empty ones, and one more."""
        self.playground.rpc.call("anvil_reorg", depth, [])
        self.playground.rpc.call("anvil_mine", "0x1")
        self.show()


def open_feed(playground: Playground, folder: Path) -> FeedFollower:
    source = open_source(playground.chain.url)
    return FeedFollower(source, folder, BlockId(0, compute_hash(source.get_headers(0, 0)[0])))


@contextmanager
def run_broker(folder: Path, topics_address: bytes) -> Iterator[str]:
    """In a thread of its own: the browser's driver wants this one."""
    loop = asyncio.new_event_loop()
    runner = build_runner(folder, topics_address, SETTINGS)
    runner.app[DASHBOARD] = Path(str(resources.files("proofcast.dashboard")))
    runner.app[PEERS] = (folder.parent / "near", folder.parent / "gone")

    async def open_door() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    port = loop.run_until_complete(open_door())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def run_stage(folder: Path) -> Iterator[Stage]:
    with run_playground(folder / "senders") as playground:
        follower = open_feed(playground, folder / "feed")
        with run_broker(folder / "feed", playground.topics) as url:
            stage = Stage(playground, folder / "feed", url, follower)
            stage.show()
            yield stage

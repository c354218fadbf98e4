"""Subscribers through random reorgs: whatever happens meanwhile, each ends with what the chain plainly holds."""

import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proofcast.broker.io.hub import Batch, Hub
from proofcast.broker.selection import Selection
from proofcast.broker.start import Oldest
from proofcast.client.io.http import Client, Subscription
from proofcast.cursor import parse_cursor
from proofcast.event import Event, Finality, Step
from proofcast.testing.broker.serving import TOPICS
from proofcast.testing.chain import SimulatedNode
from proofcast.testing.feed.publishing import PublishingChain
from proofcast.testing.feed.story import LogName, Story

ROUNDS = 8
READS_MAX = 1_000
"""Batches until a subscriber must hold what the chain holds."""


@dataclass(slots=True)
class Subscriber:
    """Does as it is told, notices what is wrong, and sometimes hangs up."""

    hub: Hub
    level: Finality
    held: list[LogName] = field(default_factory=list)
    cursor: str = ""
    _batches: AsyncIterator[Batch] | None = None

    async def catch_up(self, wanted: list[LogName]) -> None:
        for _ in range(READS_MAX):
            if self.held == wanted:
                return
            if self._batches is None:
                start = parse_cursor(self.cursor) if self.cursor else Oldest()
                self._batches = self.hub.subscribe(Selection(contract=bytes(20)), start, self.level)
            for entry in (await anext(self._batches)).entries:
                perform(self.held, entry.delivery.event)
                self.cursor = entry.delivery.cursor
        raise AssertionError(f"{len(self.held)} held, {len(wanted)} are there")

    def hang_up(self) -> None:
        self._batches = None


def perform(held: list[LogName], event: Event) -> None:
    name = (event.position.block_hash, event.position.log_index)
    if event.step is Step.UNDO:
        assert event.finality is not Finality.FINALIZED, "what is final was undone"
        assert held.pop() == name, "undone is not what was applied last"
    else:
        assert name not in held, "applied twice"
        held.append(name)


async def live_through(folder: Path, seed: int) -> None:
    """One random history in one process: subscribers of every finality, some always there, some now and then."""
    dice, story, hub = random.Random(seed), Story(folder, seed), Hub(folder, TOPICS)
    subscribers = [Subscriber(hub, level) for level in Finality for _ in range(2)]
    for _ in range(ROUNDS):
        story.grow()
        story.settle()
        for level in Finality:
            hub.advance(level)
        for subscriber in subscribers:
            if dice.random() < 0.2:
                subscriber.hang_up()
            if dice.random() < 0.6:
                await subscriber.catch_up(story.list_logs(subscriber.level))
    for subscriber in subscribers:
        await subscriber.catch_up(story.list_logs(subscriber.level))


# --- through processes


@contextmanager
def run_process(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def live_through_processes(folder: Path, seed: int) -> None:
    """A node, a process that follows it, a broker: and a reader that verifies every event, for each finality."""
    chain, dice = PublishingChain(seed, finalized_depth=5), random.Random(seed)
    chain.mine(2)
    with SimulatedNode(chain) as node:
        genesis = chain.canonical[0]
        follower = ("proofcast.testing.feed.plain", node.url, str(folder), "0", genesis.hash.hex())
        server = ("proofcast.cli", "broker", "serve", "--feed", str(folder), "--port", "0")
        with run_process(*follower) as following, run_process(*server, "--topics", f"0x{TOPICS.hex()}") as serving:
            assert following.stdout
            assert serving.stdout
            following.stdout.readline()
            line = next(line for line in serving.stdout if "http://" in line)
            url = line[line.index("http://") :].split("/api")[0]
            readers = {
                level: Client(url, topics=f"0x{TOPICS.hex()}").subscribe(start="oldest", finality=level)
                for level in Finality
            }
            held: dict[Finality, list[LogName]] = {level: [] for level in Finality}
            for _ in range(ROUNDS):
                chain.reorg(dice.choice((0, 0, 1, 2, 3)))
                for level in dice.sample(list(Finality), 2):
                    read_until(readers[level], held[level], chain, level)
            for level in Finality:
                read_until(readers[level], held[level], chain, level)


def read_until(subscription: Subscription, held: list[LogName], chain: PublishingChain, level: Finality) -> None:
    end = chain.get_settled(level).header.number
    wanted = [(block.hash, at) for block in chain.canonical[2 : end + 1] for at in range(len(block.logs))]
    if held == wanted:
        return
    for event in subscription:
        perform(held, event)
        if held == wanted:
            return

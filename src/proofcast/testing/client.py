"""Readers that verify every event, through random reorgs and processes: each ends with what the chain plainly holds."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proofcast.client.io.http import Client, Subscription
from proofcast.event import Finality
from proofcast.testing.chain import SimulatedNode
from proofcast.testing.feed.publishing import TOPICS_ADDRESS, PublishingChain
from proofcast.testing.feed.story import LogName
from proofcast.testing.feed.views import perform

ROUNDS = 8


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
    chain.mine(5)  # more than the deepest reorg takes back
    with SimulatedNode(chain) as node:
        genesis, topics = chain.canonical[0], f"0x{TOPICS_ADDRESS.hex()}"
        follower = ("proofcast.testing.feed.plain", node.url, str(folder), "0", genesis.hash.hex())
        server = ("proofcast.cli", "broker", "serve", "--feed", str(folder), "--port", "0")
        with (
            run_process(*follower) as following,
            run_process(*server, "--topics", topics) as serving,
        ):
            assert following.stdout
            assert serving.stdout
            following.stdout.readline()
            line = next(line for line in serving.stdout if "http://" in line)
            url = line[line.index("http://") :].split("/api")[0]
            readers = {
                level: Client(url, topics=topics).subscribe(start="oldest", finality=level) for level in Finality
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

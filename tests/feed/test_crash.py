"""`kill -9` of the one who follows: nothing is lost and nothing is there twice."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.testing.chain import ChainSimulator, SimulatedNode
from proofcast.testing.feed.plain import perform_rows

KILLS, SEED = 5, 81


@contextmanager
def follow(node: SimulatedNode, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that follows the node, killed at the end."""
    genesis = node.chain.canonical[0].id
    command = [sys.executable, "-m", "proofcast.testing.feed.plain", node.url, str(folder)]
    process = subprocess.Popen([*command, str(genesis.number), genesis.hash.hex()], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_nothing_is_lost_or_twice_after_kills(tmp_path: Path) -> None:
    chain, dice = ChainSimulator(SEED), random.Random(SEED)
    with SimulatedNode(chain) as node:
        for _ in range(KILLS):
            chain.mine(dice.randint(1, 40))
            with follow(node, tmp_path) as process:
                assert process.stdout
                for _ in range(dice.randint(1, 4)):
                    assert process.stdout.readline(), f"seed {SEED}"
                    chain.reorg(dice.randint(0, 6)) if dice.random() < 0.5 else chain.mine(1)
        with follow(node, tmp_path) as process:
            assert process.stdout
            while Journal(tmp_path).read_state().head != chain.head.id or not is_matched(tmp_path):
                assert process.stdout.readline(), f"seed {SEED}"
    held = perform_rows(Outbox(tmp_path).read(31_337, limit=1_000_000))
    expected = [(block.hash, log) for block in chain.canonical for log in block.logs]
    assert [(position.block_hash, log) for position, log in held] == expected, f"seed {SEED}"


def is_matched(folder: Path) -> bool:
    return Outbox(folder).get_sequence() == Journal(folder).read_state().sequence

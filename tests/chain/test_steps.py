"""The reorg machine: refusals, examples, a recorded fork, and a thousand random histories against a plain list."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from proofcast.chain.segment import BlockId
from proofcast.chain.steps import REORG_DEPTH_MAX, BlockLink, CanonicalChain, ChainStep
from proofcast.chain.trust import Trust
from proofcast.cli.doctor import find_data
from proofcast.errors import InvalidInput, Reason, Unavailable
from proofcast.ethereum import rlp
from proofcast.ethereum.header import compute_hash, parse_header
from proofcast.event import Finality, Step

GENESIS = BlockId(0, b"g" * 32)
HISTORIES = 1_000


def build_branch(parent: BlockId, length: int, name: str) -> list[BlockLink]:
    links: list[BlockLink] = []
    for number in range(parent.number + 1, parent.number + 1 + length):
        link = BlockLink(number, f"{name}{number}".encode().rjust(32), parent.hash)
        links.append(link)
        parent = link.id
    return links


def describe(steps: Sequence[ChainStep]) -> list[str]:
    return [f"{step.step} {step.hash.strip().decode()}" for step in steps]


# --- refusals


def test_branch_that_links_nowhere_is_refused() -> None:
    chain = CanonicalChain(GENESIS)
    chain.adopt(build_branch(GENESIS, 5, "a"))
    with pytest.raises(InvalidInput, match="names the parent") as refused:
        chain.adopt(build_branch(BlockId(5, b"?" * 32), 1, "b"))
    assert refused.value.reason is Reason.DISAGREES


def test_branch_with_a_gap_is_refused_and_changes_nothing() -> None:
    chain = CanonicalChain(GENESIS)
    chain.adopt(build_branch(GENESIS, 5, "a"))
    first, _, third = build_branch(chain.head, 3, "b")
    with pytest.raises(InvalidInput, match="names the parent"):
        chain.adopt([first, third])
    assert (chain.head.number, chain.sequence) == (5, 5)


def test_branch_below_finality_is_refused() -> None:
    chain = CanonicalChain(GENESIS)
    links = build_branch(GENESIS, 5, "a")
    chain.adopt(links)
    chain.settle(Finality.FINALIZED, links[2].id)
    with pytest.raises(InvalidInput, match="below the finalized block `3 ") as refused:
        chain.adopt(build_branch(links[1].id, 4, "b"))
    assert refused.value.reason is Reason.BEYOND_FINALITY
    assert chain.head == links[-1].id


@pytest.mark.parametrize("depth", [1, 2, REORG_DEPTH_MAX])
def test_branch_within_the_depth_is_adopted(depth: int) -> None:
    chain = CanonicalChain(GENESIS)
    links = build_branch(GENESIS, 70, "a")
    chain.adopt(links)
    steps = chain.adopt(build_branch(links[69 - depth].id, depth, "b"))
    assert [step.step for step in steps] == [Step.UNDO] * depth + [Step.APPLY] * depth


def test_branch_beyond_the_depth_is_refused() -> None:
    chain = CanonicalChain(GENESIS)
    links = build_branch(GENESIS, 70, "a")
    chain.adopt(links)
    with pytest.raises(InvalidInput, match="more than `64` blocks below the head"):
        chain.adopt(build_branch(links[69 - REORG_DEPTH_MAX - 1].id, 70, "b"))


def test_other_finalized_block_is_a_violation() -> None:
    chain = CanonicalChain(GENESIS)
    links = build_branch(GENESIS, 5, "a")
    chain.adopt(links)
    chain.settle(Finality.FINALIZED, links[3].id)
    with pytest.raises(InvalidInput, match="was finalized as"):
        chain.settle(Finality.FINALIZED, BlockId(3, b"?" * 32))


def test_finality_of_another_branch_than_ours_waits() -> None:
    chain = CanonicalChain(GENESIS)
    chain.adopt(build_branch(GENESIS, 5, "a"))
    with pytest.raises(Unavailable, match="our chain has"):
        chain.settle(Finality.FINALIZED, BlockId(3, b"?" * 32))


# --- examples


def test_reorg_undoes_newest_first_then_applies() -> None:
    chain = CanonicalChain(GENESIS)
    links = build_branch(GENESIS, 4, "a")
    chain.adopt(links)
    steps = chain.adopt(build_branch(links[1].id, 3, "b"))
    assert describe(steps) == ["undo a4", "undo a3", "apply b3", "apply b4", "apply b5"]
    assert [step.sequence for step in steps] == [5, 6, 7, 8, 9]


def test_lower_finality_is_lag() -> None:
    chain = CanonicalChain(GENESIS)
    links = build_branch(GENESIS, 5, "a")
    chain.adopt(links)
    assert describe(chain.settle(Finality.FINALIZED, links[3].id)) == ["final a4"]
    assert chain.settle(Finality.FINALIZED, links[1].id) == []
    assert chain.get_settled(Finality.FINALIZED) == links[3].id


def test_finality_ahead_of_us_waits() -> None:
    chain = CanonicalChain(GENESIS)
    assert chain.settle(Finality.FINALIZED, BlockId(9, b"9" * 32)) == []


def test_ancestors_of_an_agreed_block_are_agreed_from_then_on() -> None:
    chain = CanonicalChain(GENESIS)
    linked = build_branch(GENESIS, 3, "a")
    assert {step.trust for step in chain.adopt(linked)} == {Trust.LINKED}
    agreed = replace(build_branch(linked[-1].id, 1, "a")[0], trust=Trust.AGREED)
    chain.adopt([agreed])
    assert [link.trust for link in chain.list_links()] == [Trust.AGREED] * 4
    (final,) = chain.settle(Finality.SAFE, linked[1].id)
    assert final.trust is Trust.AGREED
    undone, *_ = chain.adopt(build_branch(linked[-1].id, 2, "b"))
    assert (undone.step, undone.trust) == (Step.UNDO, Trust.AGREED)
    assert [link.trust for link in chain.list_links()] == [Trust.AGREED] * 3 + [Trust.LINKED] * 2


def test_reorg_takes_the_safe_block_back() -> None:
    chain = CanonicalChain(GENESIS)
    links = build_branch(GENESIS, 5, "a")
    chain.adopt(links)
    chain.settle(Finality.SAFE, links[3].id)
    chain.adopt(build_branch(links[1].id, 4, "b"))
    assert chain.get_settled(Finality.SAFE) == links[1].id


# --- recorded


def read_blocks(path: Path) -> list[BlockLink]:
    data, position, links = path.read_bytes(), 0, []
    while position < len(data):
        block = rlp.read_span(data, position, len(data))
        head = rlp.read_children(data, block)[0]
        raw = data[head.position : head.end]
        header = parse_header(raw)
        links.append(BlockLink(header.number, compute_hash(raw), header.parent_hash))
        position = block.end
    return links


@pytest.mark.needs("data")
def test_recorded_fork_of_besu_is_followed() -> None:
    data = find_data()
    assert data
    folder = Path(data, "reorg", "besu-fork-chain-data")
    ours, theirs = (read_blocks(folder / f"fork-{name}.blocks") for name in ("outdated", "upgraded"))
    chain = CanonicalChain(ours[0].id)
    chain.adopt(ours[1:])
    fork = next(index for index, link in enumerate(theirs) if not chain.holds(link.hash))
    steps = chain.adopt(theirs[fork:])
    assert [(step.step, step.number) for step in steps] == [
        *((Step.UNDO, number) for number in (10, 9, 8, 7)),
        *((Step.APPLY, number) for number in (7, 8, 9, 10)),
    ]


# --- random histories


@dataclass
class Oracle:
    """Performs the steps in the plainest way there is: on a list."""

    chain: list[bytes]
    finalized: int = 0
    sequence: int = 0

    def perform(self, step: ChainStep) -> None:
        assert step.sequence == self.sequence + 1
        self.sequence += 1
        if step.step is Step.APPLY:
            assert step.parent_hash == self.chain[-1]
            self.chain.append(step.hash)
        elif step.step is Step.UNDO:
            assert self.chain.pop() == step.hash
            assert len(self.chain) > self.finalized, "something final was undone"
        else:
            assert self.chain[step.number] == step.hash
            self.finalized = step.number


class World:
    """Blocks are mined, now and then on an older one; `branch` is what counts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.branch: list[BlockLink] = []

    def grow(self, floor: int) -> list[BlockLink]:
        """Mine on the head or on an ancestor not below `floor`; what is new."""
        back = self.random.choice([0, 0, 0, 1, 2, self.random.randint(3, 64)])
        fork = max(floor, len(self.branch) - back)
        del self.branch[fork:]
        for _ in range(self.random.randint(1, 12)):
            parent = self.branch[-1].id if self.branch else GENESIS
            self.branch.append(BlockLink(parent.number + 1, self.random.randbytes(32), parent.hash))
        return self.branch[fork:]


def run_history(seed: int) -> None:
    world, chain = World(seed), CanonicalChain(GENESIS)
    oracle = Oracle([GENESIS.hash])
    final = 0
    for _ in range(12):
        steps = chain.adopt(world.grow(final))
        settled = len(world.branch) - world.random.randint(0, 80)
        if settled > final:
            steps += chain.settle(Finality.FINALIZED, world.branch[settled - 1].id)
            final = settled
        for step in steps:
            oracle.perform(step)
        assert oracle.chain == [GENESIS.hash, *(link.hash for link in world.branch)]
        assert chain.head.hash == oracle.chain[-1]
        assert chain.get_settled(Finality.FINALIZED).number == oracle.finalized


@pytest.mark.slow
def test_random_histories_equal_a_plain_list() -> None:
    for seed in range(HISTORIES):
        try:
            run_history(seed)
        except (AssertionError, InvalidInput):
            print(f"seed {seed}")
            raise

"""The follower: what a chain does, the journal says; what a node makes up, it does not."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from proofcast.chain.io.rpc_source import RpcSource
from proofcast.chain.io.source import open_source
from proofcast.chain.profile import FinalityRule, get_profile
from proofcast.chain.trust import Trust
from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.event import Finality, Step
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.sqlite import Journal
from proofcast.testing.chain import ChainSimulator, Lie, LyingNode, SimulatedNode

SEED = 61


@pytest.fixture
def chain() -> ChainSimulator:
    chain = ChainSimulator(SEED)
    chain.mine(5)
    return chain


@pytest.fixture
def node(chain: ChainSimulator) -> Iterator[SimulatedNode]:
    with SimulatedNode(chain) as node:
        yield node


def start(node: SimulatedNode, folder: Path) -> FeedFollower:
    return FeedFollower(RpcSource(node.url, pause_s=0), folder, node.chain.canonical[0].id)


def read_canonical(folder: Path) -> list[bytes]:
    """The hashes of the chain, by doing what the steps say."""
    held: list[bytes] = []
    for entry in Journal(folder).read(0):
        if entry.step.step is Step.APPLY:
            held.append(entry.step.hash)
        elif entry.step.step is Step.UNDO:
            assert held.pop() == entry.step.hash
    return held


def get_canonical(chain: ChainSimulator) -> list[bytes]:
    return [block.hash for block in chain.canonical[1:]]


# --- refusals


def refuse(lie: Lie, folder: Path, chain: ChainSimulator) -> InvalidInput:
    other = ChainSimulator(SEED + 1)
    other.mine(7)
    with LyingNode(chain, lie, other=other) as node, pytest.raises(InvalidInput) as refused:
        start(node, folder).poll()
    return refused.value


@pytest.mark.parametrize("lie", [Lie.TAMPER_DATA, Lie.WITHHOLD_LOG, Lie.TRUNCATE, Lie.TAMPER_HEADER, Lie.SHIFT_NUMBERS])
def test_nothing_of_a_lie_is_journalled(lie: Lie, chain: ChainSimulator, tmp_path: Path) -> None:
    assert refuse(lie, tmp_path, chain).reason is Reason.DISAGREES
    assert Journal(tmp_path).read(0) == []


@pytest.mark.parametrize("lie", [Lie.SELF_MADE_HEAD, Lie.OTHER_CHAIN])
def test_chain_of_a_nodes_own_making_never_reaches_the_checkpoint(
    lie: Lie, chain: ChainSimulator, tmp_path: Path
) -> None:
    refused = refuse(lie, tmp_path, chain)
    assert refused.reason is Reason.BEYOND_FINALITY
    assert "leaves our chain below the finalized block `0 " in str(refused)
    assert Journal(tmp_path).read(0) == []


def test_rewritten_finality_is_refused(chain: ChainSimulator, tmp_path: Path) -> None:
    refused = refuse(Lie.REWRITE_FINALITY, tmp_path, chain)
    assert refused.reason is Reason.BEYOND_FINALITY
    assert chain.canonical[0].hash.hex() in str(refused)


def test_node_of_another_chain_is_refused(chain: ChainSimulator, tmp_path: Path) -> None:
    with LyingNode(chain, Lie.OTHER_CHAIN_ID) as node:
        source = RpcSource(node.url)
        with pytest.raises(InvalidRequest, match=r"is on chain `31338`, not on `anvil` \(`31337`\)"):
            FeedFollower(source, tmp_path, profile=get_profile(31_337))


def test_source_that_is_worth_less_than_demanded_is_refused(node: SimulatedNode, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="the block is `linked`, not yet `agreed`"):
        FeedFollower(open_source(node.url), tmp_path, demanded=Trust.AGREED)


def test_reorg_beyond_finality_is_refused_and_never_silent(
    chain: ChainSimulator, node: SimulatedNode, tmp_path: Path
) -> None:
    follower = start(node, tmp_path)
    chain.mine(10)
    follower.poll()
    before = read_canonical(tmp_path)
    chain.reorg(10, 12)
    for _ in range(2):
        with pytest.raises(InvalidInput, match="below the finalized block `7 ") as refused:
            follower.poll()
        assert refused.value.reason is Reason.BEYOND_FINALITY
    assert read_canonical(tmp_path) == before


def test_follower_that_was_replaced_stops(chain: ChainSimulator, node: SimulatedNode, tmp_path: Path) -> None:
    first = start(node, tmp_path)
    first.poll()
    second = start(node, tmp_path)
    chain.mine(1)
    second.poll()
    chain.mine(1)
    with pytest.raises(InvalidRequest) as refused:
        first.poll()
    assert refused.value.reason is Reason.FENCED


def test_absent_node_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="did not answer"):
        FeedFollower(open_source("http://127.0.0.1:9"), tmp_path)


# --- following


def test_blocks_are_journalled_with_their_bytes(chain: ChainSimulator, node: SimulatedNode, tmp_path: Path) -> None:
    steps = start(node, tmp_path).poll()
    entries = Journal(tmp_path).read(0)
    assert [entry.step for entry in entries] == steps
    applied = [entry.block for entry in entries if entry.step.step is Step.APPLY]
    assert [block.receipts for block in applied if block] == [block.raw.receipts for block in chain.canonical[1:]]
    assert {step.trust for step in steps} == {Trust.LINKED}


def test_follower_recovers_from_reorg(chain: ChainSimulator, node: SimulatedNode, tmp_path: Path) -> None:
    """O2 of the notes: Decentagram's follower asks by number, only counts up, and stays behind after a reorg."""
    follower = start(node, tmp_path)
    follower.poll()
    for depth in (1, 2, 3, 1):
        orphans = [block.id for block in chain.canonical[-depth:]]
        chain.reorg(depth)
        steps = follower.poll()
        undone = [(step.number, step.hash) for step in steps if step.step is Step.UNDO]
        assert undone == list(reversed(orphans))
        assert read_canonical(tmp_path) == get_canonical(chain)


def test_reorg_to_a_shorter_branch_is_followed(chain: ChainSimulator, node: SimulatedNode, tmp_path: Path) -> None:
    follower = start(node, tmp_path)
    follower.poll()
    chain.reorg(3, 1)
    follower.poll()
    assert read_canonical(tmp_path) == get_canonical(chain)


def test_reorg_is_followed_by_a_follower_that_was_away(
    chain: ChainSimulator, node: SimulatedNode, tmp_path: Path
) -> None:
    start(node, tmp_path).poll()
    chain.reorg(4, 9)
    follower = start(node, tmp_path)
    follower.poll()
    assert read_canonical(tmp_path) == get_canonical(chain)
    assert follower.chain.head == chain.head.id


def test_node_that_lags_is_no_reorg(chain: ChainSimulator, node: SimulatedNode, tmp_path: Path) -> None:
    follower = start(node, tmp_path)
    follower.poll()
    node.behind = 3
    assert follower.poll() == []
    assert follower.chain.head == chain.head.id


def test_long_way_is_gone_in_stretches(chain: ChainSimulator, node: SimulatedNode, tmp_path: Path) -> None:
    follower = start(node, tmp_path)
    follower.poll()
    chain.reorg(2, 100)
    polls = 0
    while follower.chain.head != chain.head.id:
        follower.poll()
        polls += 1
    assert read_canonical(tmp_path) == get_canonical(chain)
    assert polls == 4


@pytest.mark.slow
def test_lying_node_among_three_is_passed_over(chain: ChainSimulator, tmp_path: Path) -> None:
    chain.mine(60)
    liar = LyingNode(chain, Lie.WITHHOLD_LOG)
    with liar, SimulatedNode(chain) as second, SimulatedNode(chain) as third:
        source = open_source(f"{liar.url},{second.url},{third.url}")
        follower = FeedFollower(source, tmp_path, chain.canonical[0].id)
        while follower.chain.head != chain.head.id:
            follower.poll()
    assert read_canonical(tmp_path) == get_canonical(chain)
    assert {entry.step.trust for entry in Journal(tmp_path).read(0)} == {Trust.AGREED}


def test_without_checkpoint_it_starts_at_the_finalized_block(
    chain: ChainSimulator, node: SimulatedNode, tmp_path: Path
) -> None:
    chain.mine(10)
    FeedFollower(open_source(node.url), tmp_path).poll()
    assert read_canonical(tmp_path) == [block.hash for block in chain.canonical[8:]]


# --- finality


def test_finality_follows_the_tags(chain: ChainSimulator, node: SimulatedNode, tmp_path: Path) -> None:
    follower = start(node, tmp_path)
    chain.mine(10)
    finals = [step for step in follower.poll() if step.step is Step.FINAL]
    assert [(step.finality, step.number) for step in finals] == [(Finality.SAFE, 11), (Finality.FINALIZED, 7)]
    assert follower.chain.get_settled(Finality.FINALIZED) == chain.canonical[7].id


def test_finality_is_32_and_64_deep_where_a_chain_has_no_tags(
    chain: ChainSimulator, node: SimulatedNode, tmp_path: Path
) -> None:
    profile = replace(get_profile(31_337), finality=FinalityRule.DEPTH)
    follower = FeedFollower(open_source(node.url), tmp_path, chain.canonical[0].id, profile)
    chain.mine(95)
    while follower.chain.head != chain.head.id:
        follower.poll()
    assert follower.chain.get_settled(Finality.SAFE) == chain.canonical[100 - 32].id
    assert follower.chain.get_settled(Finality.FINALIZED) == chain.canonical[100 - 64].id


def test_lower_finality_is_lag(chain: ChainSimulator, node: SimulatedNode, tmp_path: Path) -> None:
    follower = start(node, tmp_path)
    chain.mine(10)
    follower.poll()
    node.behind = 12
    assert follower.poll() == []
    assert follower.chain.get_settled(Finality.FINALIZED) == chain.canonical[7].id


# --- going on


def test_follow_rests_when_there_is_nothing(chain: ChainSimulator, node: SimulatedNode, tmp_path: Path) -> None:
    follower, rests = start(node, tmp_path), []
    follower.follow(is_enough=lambda: len(rests) == 3, rest=lambda: rests.append(chain.mine(1)))
    assert read_canonical(tmp_path) == get_canonical(chain)[:-1]


def test_failure_to_write_is_forgotten_and_made_good(
    chain: ChainSimulator, node: SimulatedNode, tmp_path: Path
) -> None:
    follower = start(node, tmp_path)
    follower.poll()
    connection = follower._writer._database._connect()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    chain.reorg(2, 30)
    with pytest.raises(Unavailable) as refused:
        follower.poll()
    assert refused.value.reason is Reason.NOT_STORED
    connection.execute("PRAGMA max_page_count = 1000000")
    follower.poll()
    assert read_canonical(tmp_path) == get_canonical(chain)

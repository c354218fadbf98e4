"""Several nodes: what a quorum says counts."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from proofcast.chain.io.fetch import fetch_block, link_range
from proofcast.chain.io.source import open_source
from proofcast.chain.profile import get_profile
from proofcast.chain.segment import BlockId
from proofcast.chain.source import BlockSource
from proofcast.chain.trust import Trust, verify_trust
from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.event import Finality
from proofcast.testing.chain import ChainSimulator, Lie, LyingNode, SimulatedNode
from proofcast.testing.chain.server import LoopbackServer

SEED, LENGTH = 21, 20
NOBODY = "http://127.0.0.1:9"
"""The discard port, where nothing listens."""


def build_chain(seed: int = SEED, length: int = LENGTH) -> ChainSimulator:
    chain = ChainSimulator(seed)
    chain.mine(length)
    return chain


@pytest.fixture
def running() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def open_nodes(running: ExitStack, *nodes: LoopbackServer, demanded: str = "") -> BlockSource:
    return open_source(demanded + ",".join(running.enter_context(node).url for node in nodes))


# --- refusals


@pytest.mark.parametrize("demanded", ["1 of ", "4 of ", "0 of "])
def test_quorum_that_is_no_majority_is_refused(demanded: str, running: ExitStack) -> None:
    nodes = [SimulatedNode(build_chain(length=1)) for _ in range(3)]
    with pytest.raises(InvalidRequest, match="cannot agree"):
        open_nodes(running, *nodes, demanded=demanded)


def test_node_named_twice_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"the node at `127\.0\.0\.1:9` is named twice"):
        open_source(f"{NOBODY},{NOBODY}")


def test_nodes_of_different_chains_are_refused(running: ExitStack) -> None:
    source = open_nodes(running, SimulatedNode(build_chain()), SimulatedNode(ChainSimulator(1, chain_id=5)))
    with pytest.raises(InvalidRequest, match="on different chains") as refused:
        source.get_chain_id()
    assert refused.value.reason is Reason.WRONG_NETWORK
    assert "says `31337`" in str(refused.value)
    assert "says `5`" in str(refused.value)


def test_disagreement_at_the_head_names_the_nodes_and_waits(running: ExitStack) -> None:
    ours, other = build_chain(), build_chain(SEED + 1)
    source = open_nodes(running, SimulatedNode(ours), SimulatedNode(other))
    with pytest.raises(Unavailable, match="no `2` of `2` nodes agree on block `20`") as refused:
        source.get_head(Finality.LATEST)
    assert ours.head.hash.hex() in str(refused.value)
    assert other.head.hash.hex() in str(refused.value)


def test_disagreement_about_a_finalized_block_is_an_accusation(running: ExitStack) -> None:
    source = open_nodes(running, SimulatedNode(build_chain()), SimulatedNode(build_chain(SEED + 1)))
    with pytest.raises(InvalidInput, match="agree on block `12`") as refused:
        source.get_head(Finality.FINALIZED)
    assert refused.value.reason is Reason.DISAGREES


def test_too_few_nodes_that_answer_are_no_quorum(running: ExitStack) -> None:
    node = running.enter_context(SimulatedNode(build_chain()))
    with pytest.raises(Unavailable, match="did not answer"):
        open_source(f"{node.url},{NOBODY},{NOBODY}/other").get_head(Finality.LATEST)


def test_block_that_all_nodes_falsify_is_refused_with_what_each_did(running: ExitStack) -> None:
    chain = build_chain()
    source = open_nodes(running, LyingNode(chain, Lie.TAMPER_DATA), LyingNode(chain, Lie.TAMPER_HEADER))
    with pytest.raises(InvalidInput, match="no source had a true answer") as refused:
        fetch_block(source, chain.head.hash, get_profile(31_337))
    assert "receipts have the root" in str(refused.value)
    assert "the hash of block" in str(refused.value)


def test_self_made_chain_is_refused(running: ExitStack) -> None:
    """O9 of the notes: the broker's host can feed it any chain of its own making. Here a user demands `agreed`."""
    honest, made_up = build_chain(), build_chain(SEED + 1, LENGTH + 5)
    alone = open_nodes(running, SimulatedNode(made_up))
    with pytest.raises(Unavailable, match="the block is `linked`, not yet `agreed`"):
        verify_trust(alone.trust, Trust.AGREED)
    nodes = [SimulatedNode(made_up), SimulatedNode(honest), SimulatedNode(honest)]
    source = open_nodes(running, *nodes)
    verify_trust(source.trust, Trust.AGREED)
    assert source.get_head(Finality.LATEST) == honest.head.id


# --- agreement


def test_node_that_lags_is_tolerated(running: ExitStack) -> None:
    chain = build_chain()
    source = open_nodes(running, SimulatedNode(chain, behind=7), SimulatedNode(chain), SimulatedNode(chain))
    assert source.get_head(Finality.LATEST) == chain.head.id


def test_head_is_what_a_quorum_has_reached(running: ExitStack) -> None:
    chain = build_chain()
    nodes = [SimulatedNode(chain, behind=behind) for behind in (0, 2, 5)]
    source = open_nodes(running, *nodes)
    assert source.get_head(Finality.LATEST) == chain.canonical[-3].id


def test_finality_is_never_beyond_what_a_quorum_reports(running: ExitStack) -> None:
    chain, hasty = build_chain(), ChainSimulator(SEED, finalized_depth=0)
    hasty.mine(LENGTH)
    assert hasty.head == chain.head
    source = open_nodes(running, SimulatedNode(chain), SimulatedNode(hasty), SimulatedNode(chain))
    assert source.get_head(Finality.FINALIZED) == chain.get_settled(Finality.FINALIZED).id


def test_one_node_of_three_that_rewrites_finality_is_outvoted(running: ExitStack) -> None:
    chain = build_chain()
    liar = LyingNode(chain, Lie.REWRITE_FINALITY, other=build_chain(SEED + 1))
    source = open_nodes(running, liar, SimulatedNode(chain), SimulatedNode(chain))
    assert source.get_head(Finality.FINALIZED) == chain.get_settled(Finality.FINALIZED).id


def test_silent_node_is_passed_over(running: ExitStack) -> None:
    chain = build_chain()
    nodes = [running.enter_context(SimulatedNode(chain)) for _ in range(2)]
    source = open_source(f"2 of {NOBODY},{nodes[0].url},{nodes[1].url}")
    assert source.get_head(Finality.LATEST) == chain.head.id
    assert fetch_block(source, chain.head.hash, get_profile(31_337)).trust is Trust.AGREED


def test_lying_node_is_passed_over(running: ExitStack) -> None:
    chain = build_chain()
    source = open_nodes(running, LyingNode(chain, Lie.WITHHOLD_LOG), SimulatedNode(chain), SimulatedNode(chain))
    assert fetch_block(source, chain.head.hash, get_profile(31_337)).raw.receipts == chain.head.raw.receipts


def test_header_pass_leads_to_the_hash_of_a_quorum(running: ExitStack) -> None:
    chain, other = build_chain(), build_chain(SEED + 1)
    source = open_nodes(running, SimulatedNode(other), SimulatedNode(chain), SimulatedNode(chain))
    segments = link_range(source, 1, LENGTH, length=8)
    assert [segment.last_hash for segment in segments] == [chain.canonical[number].hash for number in (8, 16, 20)]
    assert {segment.trust for segment in segments} == {Trust.AGREED}
    assert BlockId(segments[1].first - 1, segments[1].parent_hash) == chain.canonical[8].id

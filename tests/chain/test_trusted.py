"""The trusted chain: bytes in, adoptions out, or an error that changes nothing."""

import pytest

from proofcast.chain.profile import get_profile
from proofcast.chain.segment import BlockId
from proofcast.chain.trust import Trust
from proofcast.chain.trusted import AHEAD_MAX, Adoption, TrustedChain
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.ethereum.block import RawBlock
from proofcast.event import Finality, Step
from proofcast.testing.chain import ChainSimulator

SEED = 91
PROFILE = get_profile(31_337)


@pytest.fixture
def world() -> ChainSimulator:
    world = ChainSimulator(SEED)
    world.mine(3)
    return world


def walk(chain: TrustedChain, world: ChainSimulator, trust: Trust = Trust.LINKED) -> Adoption:
    """Give the chain what it wants until it is content."""
    chain.aim(world.head.id)
    while chain.wanted:
        adoption = chain.receive(world.blocks[chain.wanted].raw, trust)
    assert adoption
    return adoption


# --- refusals


def test_other_block_than_wanted_is_refused_and_the_right_one_taken(world: ChainSimulator) -> None:
    chain = TrustedChain(world.canonical[0].id, PROFILE)
    chain.aim(world.head.id)
    with pytest.raises(InvalidInput, match="expected was") as refused:
        chain.receive(world.canonical[1].raw)
    assert (refused.value.have, refused.value.need) == (world.canonical[1].hash.hex(), world.head.hash.hex())
    assert chain.wanted == world.head.hash
    assert walk(chain, world).blocks[-1].hash == world.head.hash


def test_block_with_false_receipts_is_refused_and_the_right_one_taken(world: ChainSimulator) -> None:
    chain, head = TrustedChain(world.canonical[0].id, PROFILE), world.head.raw
    chain.aim(world.head.id)
    with pytest.raises(InvalidInput, match="receipts have the root"):
        chain.receive(RawBlock(head.header, None, (head.receipts or ())[:-1]))
    assert len(walk(chain, world).steps) == 3


def test_head_that_lies_about_its_number_is_refused(world: ChainSimulator) -> None:
    chain = TrustedChain(world.canonical[0].id, PROFILE)
    chain.aim(BlockId(7, world.head.hash))
    with pytest.raises(InvalidInput, match="has the place of number `7`"):
        chain.receive(world.head.raw)


def test_head_far_above_ours_is_refused(world: ChainSimulator) -> None:
    with pytest.raises(InvalidRequest, match="more than `64`"):
        TrustedChain(world.canonical[0].id, PROFILE).aim(BlockId(AHEAD_MAX + 1, bytes(32)))


def test_other_block_below_finality_is_a_violation(world: ChainSimulator) -> None:
    chain = TrustedChain(world.canonical[0].id, PROFILE)
    walk(chain, world)
    chain.settle(Finality.FINALIZED, world.canonical[2].id)
    with pytest.raises(InvalidInput) as refused:
        chain.aim(BlockId(1, bytes(32)))
    assert refused.value.reason is Reason.BEYOND_FINALITY


# --- following


def test_chain_is_followed_back_to_what_is_held(world: ChainSimulator) -> None:
    chain = TrustedChain(world.canonical[0].id, PROFILE)
    adoption = walk(chain, world, Trust.AGREED)
    assert [block.hash for block in adoption.blocks] == [block.hash for block in world.canonical[1:]]
    assert [step.trust for step in adoption.steps] == [Trust.AGREED] * 3
    assert chain.wanted is None


def test_reorg_is_no_special_case(world: ChainSimulator) -> None:
    chain = TrustedChain(world.canonical[0].id, PROFILE)
    walk(chain, world)
    world.reorg(2)
    steps = walk(chain, world).steps
    assert [(step.step, step.number) for step in steps] == [
        (Step.UNDO, 3),
        (Step.UNDO, 2),
        (Step.APPLY, 2),
        (Step.APPLY, 3),
        (Step.APPLY, 4),
    ]


def test_aiming_elsewhere_forgets_the_branch(world: ChainSimulator) -> None:
    chain = TrustedChain(world.canonical[0].id, PROFILE)
    chain.aim(world.head.id)
    chain.receive(world.head.raw)
    world.reorg(1)
    assert walk(chain, world).blocks[-1].hash == world.head.hash


def test_node_that_lags_behind_finality_is_no_reorg(world: ChainSimulator) -> None:
    chain = TrustedChain(world.canonical[0].id, PROFILE)
    walk(chain, world)
    chain.settle(Finality.FINALIZED, world.canonical[2].id)
    for block in world.canonical[1:]:
        chain.aim(block.id)
        assert chain.wanted is None

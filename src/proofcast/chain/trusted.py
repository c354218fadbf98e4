"""What this process has come to believe of one chain: it holds only blocks that were checked.

Theory of operation. The chain starts at a checkpoint, a block that its user trusts, and somebody says what the head is
now. From there it is followed *back*, by hash, until a block is reached that we hold:

    aim(head)        -> wanted is the head's hash, unless we hold it
    receive(block)   -> the block must have the wanted hash and all its roots (`verify.py`); then either its parent is
                        held, and the whole branch is adopted (`steps.py`), or wanted is now the parent's hash

So nothing is ever asked for by its number, a reorg is not even a special case, and a block that was adopted is an
ancestor of the head that was aimed at. Its trust is that of the head's hash.

A refused block changes nothing: another source may be asked for the same hash. Aiming elsewhere forgets the branch. A
head that we hold already, or have left behind as final, is a node that lags, not a reorg. Walking back ends, with an
error, at the finalized block and 64 blocks below the head.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from proofcast.chain.profile import FINALIZED_DEPTH, SAFE_DEPTH, ChainProfile
from proofcast.chain.segment import BlockId
from proofcast.chain.steps import BlockLink, CanonicalChain, ChainStep
from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedBlock, verify_block
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.ethereum.block import RawBlock
from proofcast.event import Finality

AHEAD_MAX = 64
"""Blocks fetched in one go, held in memory until they link: some tens of megabytes where blocks are full."""
DEPTHS = {Finality.LATEST: 0, Finality.SAFE: SAFE_DEPTH, Finality.FINALIZED: FINALIZED_DEPTH}


@dataclass(frozen=True, slots=True)
class Adoption:
    """A branch became the chain."""

    steps: tuple[ChainStep, ...]
    blocks: tuple[VerifiedBlock, ...]
    """Of the `apply` steps, in their order."""


class TrustedChain:
    def __init__(self, checkpoint: BlockId, profile: ChainProfile, sequence: int = 0) -> None:
        self.profile = profile
        self._canonical = CanonicalChain(checkpoint, sequence)
        self._target: BlockId | None = None
        self._branch: list[VerifiedBlock] = []
        """From the target downwards."""

    @property
    def head(self) -> BlockId:
        return self._canonical.head

    def get_settled(self, finality: Finality) -> BlockId:
        return self._canonical.get_settled(finality)

    def holds(self, block_hash: bytes) -> bool:
        return self._canonical.holds(block_hash)

    def restore(self, links: Sequence[BlockLink], safe: BlockId) -> None:
        """Take up where a journal ended."""
        self._canonical.restore(links, safe)

    # --- blocks

    @property
    def wanted(self) -> bytes | None:
        """The hash of the block that is needed next."""
        if self._branch:
            return self._branch[-1].header.parent_hash
        return self._target.hash if self._target else None

    def aim(self, head: BlockId) -> None:
        """Say where to go; a head far above ours is approached in several goes."""
        ahead = head.number - self.head.number
        if ahead > AHEAD_MAX:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"block `{head}` is `{ahead}` blocks above our head, more than `{AHEAD_MAX}`",
                hint="aim at a block in between first",
            )
        if self._target != head:
            self._branch = []
        self._target = None if self._canonical.is_past(head) else head

    def receive(self, raw: RawBlock, trust: Trust = Trust.LINKED) -> Adoption | None:
        """The block that is wanted; an adoption once its parent is held."""
        assert self._target is not None, "no block is wanted"
        block = verify_block(raw, self.profile, self.wanted, None, trust)
        number = self._target.number - len(self._branch)
        if block.header.number != number:
            raise InvalidInput(
                Reason.DISAGREES,
                f"block `{block.link.id}` has the place of number `{number}`",
                hint="the source made the block up; ask another one",
            )
        self._canonical.verify_reach(block.link)
        self._branch.append(block)
        return self._adopt() if self.holds(block.header.parent_hash) else None

    def _adopt(self) -> Adoption:
        branch = tuple(reversed(self._branch))
        self._branch, self._target = [], None
        return Adoption(tuple(self._canonical.adopt([block.link for block in branch])), branch)

    # --- finality

    def settle(self, finality: Finality, claimed: BlockId) -> list[ChainStep]:
        """What nodes say is safe or finalized, as far as we hold it."""
        return self._canonical.settle(finality, claimed)

    def find_settled(self, finality: Finality) -> BlockId | None:
        """What is safe or finalized by depth alone, where nodes do not say it."""
        link = self._canonical.find(self.head.number - DEPTHS[finality])
        return link.id if link else None

"""The loop that follows a chain into the journal.

One poll: ask what the head is, walk back from it to what is held, journal the steps, then what became safe or final.
Everything that is decided is decided in `chain/trusted.py`; what a poll could not finish, the next one does. Near the
head blocks come one by one, each by its hash. A head further away is approached in stretches fetched side by side.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from proofcast.chain.io.alternatives import PASSED_OVER, ask_in_turn
from proofcast.chain.profile import ChainProfile, FinalityRule, get_profile
from proofcast.chain.segment import BlockId
from proofcast.chain.source import BlockSource
from proofcast.chain.steps import ChainStep
from proofcast.chain.trust import Trust, verify_trust
from proofcast.chain.trusted import Adoption, TrustedChain
from proofcast.chain.verify import VerifiedBlock
from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.header import compute_hash
from proofcast.event import Finality
from proofcast.feed.io.sqlite import Journal

STRETCH = 32
"""Blocks fetched side by side while catching up."""


class FeedFollower:
    """The journal's one writer. A poll that fails leaves the journal as it was, or one whole adoption further."""

    def __init__(
        self,
        source: BlockSource,
        folder: Path,
        checkpoint: BlockId | None = None,
        profile: ChainProfile | None = None,
        demanded: Trust = Trust.LINKED,
    ) -> None:
        """Without a checkpoint a new journal starts at the source's finalized block, and trusts it for that."""
        verify_trust(source.trust, demanded)
        chain_id = source.get_chain_id()
        self._source, self._profile = source, profile or get_profile(chain_id)
        verify_network(source, chain_id, self._profile)
        self._writer = Journal(folder).open_writer(chain_id, checkpoint or find_start(source))
        self._chain: TrustedChain | None = None
        self._settled_at: BlockId | None = None
        """The head at which finality was asked for: it moves with the head, and most polls find the same one."""

    @property
    def chain(self) -> TrustedChain:
        """As the journal says, read again after a failure to write it."""
        if self._chain is None:
            state = self._writer.read_state()
            self._chain = TrustedChain(state.finalized, self._profile, state.sequence)
            self._chain.restore(state.links, state.safe)
        return self._chain

    def poll(self) -> list[ChainStep]:
        """Do what there is to do, at most one stretch of blocks; the steps that were journalled."""
        head = self._source.get_head(Finality.LATEST)
        steps = [] if head is None else self._follow(head)
        if steps or head != self._settled_at:
            steps += self._settle()
            self._settled_at = head
        return steps

    def follow(self, is_enough: Callable[[], bool], rest: Callable[[], None]) -> None:
        """Poll until it is enough; rest after a poll that found nothing, or whose source did not answer."""
        while not is_enough():
            try:
                idle = not self.poll()
            except (Unavailable, InvalidInput) as error:
                if error.reason is Reason.NOT_STORED:
                    raise
                self._writer.note_failure(error.reason)
                if isinstance(error, InvalidInput):
                    raise
                idle = True
            if idle:
                rest()

    # --- blocks

    def _follow(self, head: BlockId) -> list[ChainStep]:
        fetched: dict[bytes, RawBlock] = {}
        target = head
        if head.number > self.chain.head.number + STRETCH:
            target, fetched = self._fetch_stretch()
        self.chain.aim(target)
        while self.chain.wanted:
            adoption = self._receive(self.chain.wanted, fetched)
            if adoption:
                return self._journal(adoption.steps, adoption.blocks)
        return []

    def _fetch_stretch(self) -> tuple[BlockId, dict[bytes, RawBlock]]:
        """The end of the next stretch by a hash that the source vouches for, and the blocks that may lead to it."""
        first = self.chain.head.number + 1
        last = first + STRETCH - 1
        header = self._source.get_headers(last, last)[0]
        try:
            blocks = self._source.get_blocks(first, last)
        except PASSED_OVER:
            blocks = []  # then they are fetched by hash, one by one, from whoever has them
        return BlockId(last, compute_hash(header)), {compute_hash(block.header): block for block in blocks}

    def _receive(self, wanted: bytes, fetched: dict[bytes, RawBlock]) -> Adoption | None:
        block = fetched.pop(wanted, None)
        if block is not None:
            try:
                return self.chain.receive(block, self._source.trust)
            except PASSED_OVER:
                fetched.clear()  # whoever served it is not believed for the rest either
        return ask_in_turn(
            self._source, lambda one: self.chain.receive(one.get_block_by_hash(wanted), self._source.trust)
        )

    def _journal(self, steps: Sequence[ChainStep], blocks: Sequence[VerifiedBlock] = ()) -> list[ChainStep]:
        """Write them down; where that fails the chain in memory is ahead of the journal, and forgotten."""
        chain, self._chain = self._chain, None
        self._writer.append(steps, blocks)
        self._chain = chain
        return list(steps)

    # --- finality

    def _settle(self) -> list[ChainStep]:
        steps: list[ChainStep] = []
        for finality in (Finality.SAFE, Finality.FINALIZED):
            claimed = self._find_settled(finality)
            if claimed is not None:
                steps += self._journal(self.chain.settle(finality, claimed))
        if steps:
            self._writer.trim()
        return steps

    def _find_settled(self, finality: Finality) -> BlockId | None:
        if self._profile.finality is FinalityRule.DEPTH:
            return self.chain.find_settled(finality)
        return self._source.get_head(finality)


def verify_network(source: BlockSource, chain_id: int, profile: ChainProfile) -> None:
    if chain_id != profile.chain_id:
        raise InvalidRequest(
            Reason.WRONG_NETWORK,
            f"`{source.name}` is on chain `{chain_id}`, not on `{profile.name}` (`{profile.chain_id}`)",
            hint="give a node of the right chain",
        )


def find_start(source: BlockSource) -> BlockId:
    start = source.get_head(Finality.FINALIZED) or source.get_head(Finality.LATEST)
    if start is None:
        raise Unavailable(
            Reason.NOT_YET, f"`{source.name}` has no block to start from", hint="name a checkpoint, or try again later"
        )
    return start

"""The reorg machine: which blocks are the chain now, and what has to be done when that changes.

The machine holds the canonical blocks from the finalized one to the head. Somebody hands it a branch: blocks of which
each is the parent of the next, the first one's parent being any block held. It answers with numbered steps:

- `undo` for every block above that parent, newest first; then `apply` for every block of the branch, oldest first;
- `final` when the safe or the finalized block moves up: everything up to it is settled.

So whoever performs the steps in their order has the canonical chain after each of them, and steps are never taken back:
a reorg is more steps. What is refused, with nothing changed:

- a branch that does not link, to a block held or within itself;
- a branch that leaves the chain below the finalized block, or more than 64 blocks below the head;
- a finalized block other than the one already finalized at that height. A lower one is lag, and changes nothing.

A safe block is a node's guess: a reorg may undo it, and then the safe block is the branch's parent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from proofcast.chain.segment import BlockId, shorten_hash
from proofcast.chain.trust import Trust
from proofcast.errors import InvalidInput, Reason, Unavailable
from proofcast.event import Finality, Step

REORG_DEPTH_MAX = 64
"""Two epochs: what is deeper is final on a healthy chain, so a deeper reorg is a matter for a human."""
UNSETTLED_MAX = 65_536
"""Blocks above the finalized one: nine days of Ethereum without finality, a few megabytes here."""
PAST_MAX = 4_096
"""Finalized blocks whose hashes are remembered: half a day in which a node may lag and still be caught lying."""


@dataclass(frozen=True, slots=True)
class BlockLink:
    """A block as far as the chain's order is concerned."""

    number: int
    hash: bytes
    parent_hash: bytes
    trust: Trust = Trust.LINKED

    @property
    def id(self) -> BlockId:
        return BlockId(self.number, self.hash)


@dataclass(frozen=True, slots=True)
class ChainStep:
    sequence: int
    """Counted from 1 by the one who journals, without gaps."""
    step: Step
    number: int
    hash: bytes
    parent_hash: bytes
    trust: Trust
    finality: Finality
    """Of a `final` step: which of the two blocks moved here. Of the others: `latest`."""


@dataclass(slots=True)
class CanonicalChain:
    """The machine; `checkpoint` is its first finalized block."""

    checkpoint: BlockId
    sequence: int = 0
    """Of the last step."""
    _finalized: BlockId = field(init=False)
    _safe: BlockId = field(init=False)
    _links: list[BlockLink] = field(init=False, default_factory=list)
    """Above the finalized block, oldest first; numbers have no gaps."""
    _numbers: dict[bytes, int] = field(init=False)
    """Of the finalized block and those above it, by hash."""
    _past: dict[int, bytes] = field(init=False, default_factory=dict)
    """Hashes of the last blocks that were finalized here, by number."""

    def __post_init__(self) -> None:
        self._finalized = self._safe = self.checkpoint
        self._numbers = {self.checkpoint.hash: self.checkpoint.number}
        self._past[self.checkpoint.number] = self.checkpoint.hash

    @property
    def head(self) -> BlockId:
        return self._links[-1].id if self._links else self._finalized

    def get_settled(self, finality: Finality) -> BlockId:
        return {Finality.LATEST: self.head, Finality.SAFE: self._safe, Finality.FINALIZED: self._finalized}[finality]

    def holds(self, block_hash: bytes) -> bool:
        return block_hash in self._numbers

    def is_past(self, block: BlockId) -> bool:
        """Is it held, or below the finalized block? Then there is nothing to do; another block there is a violation."""
        if block.number <= self._finalized.number:
            self._verify_finalized(block)
            return True
        return self.holds(block.hash)

    def find(self, number: int) -> BlockLink | None:
        """The canonical block above the finalized one that has this number."""
        index = number - self._finalized.number - 1
        return self._links[index] if 0 <= index < len(self._links) else None

    def list_links(self) -> Sequence[BlockLink]:
        return tuple(self._links)

    def restore(self, links: Sequence[BlockLink], safe: BlockId) -> None:
        """Take up a chain that was journalled, on top of the checkpoint; no steps come of it."""
        sequence = self.sequence
        self.adopt(links)
        self._safe = max(safe, self._finalized)
        self.sequence = sequence

    # --- branches

    def adopt(self, branch: Sequence[BlockLink]) -> list[ChainStep]:
        """Make the branch's last block the head."""
        if not branch:
            return []
        parent = self._find_parent(branch)
        depth = self.head.number - parent.number
        undone = self._links[len(self._links) - depth :]
        steps = [self._number(Step.UNDO, link) for link in reversed(undone)]
        for link in undone:
            del self._numbers[link.hash]
        del self._links[len(self._links) - depth :]
        self._safe = min(self._safe, parent)
        for link in branch:
            self._links.append(link)
            self._numbers[link.hash] = link.number
            steps.append(self._number(Step.APPLY, link))
        self._raise_trust(len(self._links) - len(branch))
        return steps

    def _raise_trust(self, held: int) -> None:
        """Parent links prove the ancestors of a hash: what leads to the head is believed at least as much as the head.

        Steps that were made stay as they are; those still to come of the same blocks carry the stronger word.
        """
        strongest = self._links[-1].trust
        for at in range(len(self._links) - 2, -1, -1):
            link = self._links[at]
            if not link.trust.reaches(strongest):
                self._links[at] = replace(link, trust=strongest)
            elif at < held:
                return  # so do all before it, since the last adoption
            else:
                strongest = link.trust

    def _find_parent(self, branch: Sequence[BlockLink]) -> BlockId:
        """The block held on which the branch stands, once everything about the branch was checked."""
        parent = self._get_parent(branch[0])
        verify_links(parent, branch)
        depth = self.head.number - parent.number
        if depth > REORG_DEPTH_MAX:
            raise refuse_depth(f"more than `{REORG_DEPTH_MAX}` blocks below the head", branch[0], REORG_DEPTH_MAX)
        if len(self._links) - depth + len(branch) > UNSETTLED_MAX:
            raise Unavailable(
                Reason.NOT_YET,
                f"more than `{UNSETTLED_MAX}` blocks stand above the finalized block `{self._finalized}`",
                hint="finality has stopped: look at the chain, or follow it from a newer checkpoint",
            )
        return parent

    def _get_parent(self, first: BlockLink) -> BlockId:
        number = self._numbers.get(first.parent_hash)
        if number is not None:
            return BlockId(number, first.parent_hash)
        self.verify_reach(first)
        raise refuse_link(first, self.head)

    def verify_reach(self, link: BlockLink) -> None:
        """Refuse a block whose branch can leave our chain only where no branch may; nobody need walk back further."""
        if self.holds(link.parent_hash):
            return
        if link.number <= self._finalized.number + 1:
            raise refuse_depth(f"below the finalized block `{self._finalized}`", link, self._finalized.number)
        if link.number <= self.head.number - REORG_DEPTH_MAX:
            raise refuse_depth(f"more than `{REORG_DEPTH_MAX}` blocks below the head", link, REORG_DEPTH_MAX)

    # --- finality

    def settle(self, finality: Finality, claimed: BlockId) -> list[ChainStep]:
        """Move the safe or finalized block up to `claimed`; nothing happens where we are not there yet."""
        settled = self.get_settled(finality)
        if claimed.number <= settled.number:
            if finality is Finality.FINALIZED:
                self._verify_finalized(claimed)
            return []
        link = self.find(claimed.number)
        if link is None:
            return []  # not fetched yet
        if link.hash != claimed.hash:
            raise Unavailable(
                Reason.NOT_YET,
                f"block `{claimed.number}` is said to be {finality} as `0x{claimed.hash.hex()}`,"
                f" our chain has `0x{link.hash.hex()}` there",
                hint="a reorg is under way; if this stays, the source contradicts itself",
            )
        if finality is Finality.FINALIZED:
            self._finalize(link)
        self._safe = max(self._safe, link.id)
        return [self._number(Step.FINAL, link, finality)]

    def _verify_finalized(self, claimed: BlockId) -> None:
        known = self._past.get(claimed.number, claimed.hash)
        if known != claimed.hash:
            raise InvalidInput(
                Reason.BEYOND_FINALITY,
                f"block `{claimed.number}` was finalized as `0x{known.hex()}`"
                f" and is now said to be `0x{claimed.hash.hex()}`",
                hint="one of the two nodes or moments lied; compare with a block explorer before going on",
            )

    def _finalize(self, link: BlockLink) -> None:
        count = link.number - self._finalized.number
        for old in (self._finalized.hash, *(passed.hash for passed in self._links[: count - 1])):
            del self._numbers[old]
        for passed in self._links[:count]:
            self._past[passed.number] = passed.hash
            self._past.pop(passed.number - PAST_MAX, None)
        del self._links[:count]
        self._finalized = link.id

    def _number(self, step: Step, link: BlockLink, finality: Finality = Finality.LATEST) -> ChainStep:
        self.sequence += 1
        return ChainStep(self.sequence, step, link.number, link.hash, link.parent_hash, link.trust, finality)


def verify_links(parent: BlockId, branch: Sequence[BlockLink]) -> None:
    """Each block names the one before it and has the next number."""
    for link in branch:
        if link.parent_hash != parent.hash or link.number != parent.number + 1:
            raise refuse_link(link, parent)
        parent = link.id


def refuse_link(link: BlockLink, parent: BlockId) -> InvalidInput:
    return InvalidInput(
        Reason.DISAGREES,
        f"block `{link.id}` names the parent `0x{link.parent_hash.hex()}`, not block `{parent.number}`,"
        f" which is `0x{parent.hash.hex()}`",
        hint="the source mixes branches or changed its mind meanwhile; ask again, or ask another one",
        have=link.parent_hash.hex(),
        need=parent.hash.hex(),
    )


def refuse_depth(where: str, link: BlockLink, limit: int) -> InvalidInput:
    return InvalidInput(
        Reason.BEYOND_FINALITY,
        f"the branch with block `{link.id}` leaves our chain {where}"
        f" (its parent is `{shorten_hash(link.parent_hash)}`)",
        hint="such a reorg is not followed: compare with other nodes, then start again from a checkpoint you trust",
        have=link.number,
        need=limit,
    )

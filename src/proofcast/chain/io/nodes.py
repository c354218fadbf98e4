"""Several nodes as one source: what `quorum` of them say counts, and everything else is asked of whoever answers.

- A head is the highest block that a quorum has reached, by the hash that a quorum gives for it. So one node that is
  behind, ahead, silent or lying changes nothing, and finality is never beyond what a quorum reports.
- Headers lead to a last hash that a quorum gives.
- Blocks are known by their hash, so any node may serve them.
- Nodes without a quorum for one hash are named with what they said: near the head that passes, below finality it is an
  accusation.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from proofcast.chain.io.alternatives import PASSED_OVER, ask_in_turn, summarise
from proofcast.chain.segment import BlockId
from proofcast.chain.source import BlockSource
from proofcast.chain.trust import Trust
from proofcast.chain.verify import disagree, verify_linked
from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Reason, Unavailable
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.header import compute_hash
from proofcast.event import Finality

Answer = TypeVar("Answer")


class NodesSource:
    trust = Trust.AGREED

    def __init__(self, nodes: Sequence[BlockSource], quorum: int) -> None:
        if not max(1, len(nodes) / 2) < quorum <= len(nodes):
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"`{quorum}` of `{len(nodes)}` nodes cannot agree",
                hint="demand more than half of at least two: smaller groups could agree on different blocks",
            )
        self.alternatives = tuple(nodes)
        self.name = f"{quorum} of {', '.join(node.name for node in nodes)}"
        self._quorum = quorum

    def get_chain_id(self) -> int:
        """One that all nodes that answer have."""
        answers = self._ask_all(lambda node: node.get_chain_id())
        if len(set(answers.values())) > 1:
            raise InvalidRequest(
                Reason.WRONG_NETWORK,
                f"the nodes are on different chains: {describe(answers)}",
                hint="give nodes of one chain",
            )
        return next(iter(answers.values()))

    def get_head(self, finality: Finality) -> BlockId | None:
        heads = self._ask_all(lambda node: node.get_head(finality))
        known = {node: head for node, head in heads.items() if head is not None}
        if len(known) < self._quorum:
            return None
        number = sorted((head.number for head in known.values()), reverse=True)[self._quorum - 1]
        reached = [node for node, head in known.items() if head.number >= number]
        votes = self._vote(reached, number, {node: head.hash for node, head in known.items() if head.number == number})
        return BlockId(number, self._count(number, votes, finality))

    def get_headers(self, first: int, last: int) -> list[bytes]:
        agreed = self._count(last, self._vote(self.alternatives, last, {}), Finality.LATEST)

        def ask(node: BlockSource) -> list[bytes]:
            headers = verify_linked(node.get_headers(first, last), first, last, None, self.trust)
            if headers[-1].hash != agreed:
                raise disagree(f"the hash of block `{last}`", headers[-1].hash, agreed)
            return [header.raw for header in headers]

        return ask_in_turn(self, ask)

    def get_block_by_hash(self, block_hash: bytes) -> RawBlock:
        return ask_in_turn(self, lambda node: node.get_block_by_hash(block_hash))

    def get_blocks(
        self, first: int, last: int, *, with_receipts: bool = True, with_transactions: bool = False
    ) -> list[RawBlock]:
        return ask_in_turn(
            self,
            lambda node: node.get_blocks(first, last, with_receipts=with_receipts, with_transactions=with_transactions),
        )

    # --- votes

    def _vote(
        self, nodes: Sequence[BlockSource], number: int, known: dict[BlockSource, bytes]
    ) -> dict[BlockSource, bytes]:
        """What each node says is the hash of the block; `known` are those that said so already."""
        others = [node for node in nodes if node not in known]
        asked = self._ask(others, lambda node: compute_hash(node.get_headers(number, number)[0]))
        return known | {node: answer for node, answer in asked.items() if isinstance(answer, bytes)}

    def _count(self, number: int, votes: dict[BlockSource, bytes], finality: Finality) -> bytes:
        """The hash that a quorum gave."""
        (winner, count), *_ = Counter(votes.values()).most_common() or [(b"", 0)]
        if count >= self._quorum:
            return winner
        said = describe({node: f"0x{value.hex()}" for node, value in votes.items()})
        message = f"no `{self._quorum}` of `{len(self.alternatives)}` nodes agree on block `{number}`: {said}"
        if finality is Finality.FINALIZED and len(votes) >= self._quorum:
            raise InvalidInput(Reason.DISAGREES, message, hint="finalized blocks never differ: one of the nodes lies")
        raise Unavailable(Reason.NOT_YET, message, hint="near the head this passes; if it stays, one of them lies")

    # --- asking

    def _ask_all(self, question: Callable[[BlockSource], Answer]) -> dict[BlockSource, Answer]:
        """Answers of at least a quorum."""
        said = self._ask(self.alternatives, question)
        answers = {node: answer for node, answer in said.items() if not isinstance(answer, ProofcastError)}
        if len(answers) < self._quorum:
            failures = [(node.name, error) for node, error in said.items() if isinstance(error, ProofcastError)]
            raise summarise(failures)
        return answers

    def _ask(
        self, nodes: Sequence[BlockSource], question: Callable[[BlockSource], Answer]
    ) -> dict[BlockSource, Answer | ProofcastError]:
        """What every node said, its failure included."""

        def attempt(node: BlockSource) -> Answer | ProofcastError:
            try:
                return question(node)
            except PASSED_OVER as error:
                return error

        with ThreadPoolExecutor(max(1, len(nodes))) as pool:
            return dict(zip(nodes, pool.map(attempt, nodes), strict=True))


def describe(answers: dict[BlockSource, Answer]) -> str:
    return ", ".join(f"`{node.name}` says `{answer}`" for node, answer in answers.items())

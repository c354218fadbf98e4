"""What a source of blocks can be asked; `chain/io` has those there are."""

from collections.abc import Sequence
from typing import Protocol

from proofcast.chain.segment import BlockId
from proofcast.chain.trust import Trust
from proofcast.ethereum.block import RawBlock
from proofcast.event import Finality


class BlockSource(Protocol):
    """Nothing of what it gives is checked, except that several nodes were compared where `trust` says so."""

    @property
    def name(self) -> str:
        """For messages; without the secrets that an address may hold."""

    @property
    def trust(self) -> Trust:
        """What a hash from `get_head` or the last hash of `get_headers` is worth."""

    @property
    def alternatives(self) -> Sequence["BlockSource"]:
        """Whom to ask in turn when an answer is false or does not come: the source itself, or those it is made of."""

    def get_chain_id(self) -> int: ...

    def get_head(self, finality: Finality) -> BlockId | None:
        """The highest block that is so settled; None where the source cannot say."""

    def get_headers(self, first: int, last: int) -> list[bytes]: ...

    def get_block_by_hash(self, block_hash: bytes) -> RawBlock:
        """Header and receipts."""

    def get_blocks(
        self, first: int, last: int, *, with_receipts: bool = True, with_transactions: bool = False
    ) -> list[RawBlock]: ...

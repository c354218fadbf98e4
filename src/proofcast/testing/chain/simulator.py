"""A chain that is mined and reorganised at will, with real hashes, roots and blooms; the same for the same seed."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from proofcast.chain.segment import BlockId
from proofcast.ethereum import rlp
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.bloom import compute_bloom
from proofcast.ethereum.header import Header, compute_hash, encode_header
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import Log, Receipt, encode_receipt
from proofcast.ethereum.trie import EMPTY_ROOT, compute_ordered_root
from proofcast.event import Finality

CHAIN_ID = 31_337
TRANSACTIONS_MAX, LOGS_MAX = 4, 3
GAS_EACH = 50_000
BLOCK_TIME_S = 12
GENESIS_TIME_S = 1_700_000_000
NO_OMMERS = keccak256(rlp.encode([]))

Change = Callable[[Header], Header]
"""How a header is falsified before its hash is computed."""


@dataclass(frozen=True, slots=True)
class SimulatedBlock:
    header: Header
    hash: bytes
    raw: RawBlock
    receipts: tuple[Receipt, ...]

    @property
    def id(self) -> BlockId:
        return BlockId(self.header.number, self.hash)

    @property
    def logs(self) -> list[Log]:
        return [log for receipt in self.receipts for log in receipt.logs]


class ChainSimulator:
    """Every block that was ever mined is kept; `canonical` is the branch that counts now."""

    def __init__(self, seed: int, *, chain_id: int = CHAIN_ID, safe_depth: int = 4, finalized_depth: int = 8) -> None:
        self.seed, self.chain_id = seed, chain_id
        self.random = random.Random(seed)
        self.addresses = [self.random.randbytes(20) for _ in range(12)]
        self.topics = [self.random.randbytes(32) for _ in range(24)]
        self._depths = {Finality.LATEST: 0, Finality.SAFE: safe_depth, Finality.FINALIZED: finalized_depth}
        genesis = self._build(None, [], lambda header: header)
        self.canonical = [genesis]
        self.blocks = {genesis.hash: genesis}

    @property
    def head(self) -> SimulatedBlock:
        return self.canonical[-1]

    def get_settled(self, finality: Finality) -> SimulatedBlock:
        return self.canonical[max(0, len(self.canonical) - 1 - self._depths[finality])]

    def mine(self, count: int = 1, *, change: Change = lambda header: header) -> list[SimulatedBlock]:
        """Add blocks on the head."""
        return [self._mine(change) for _ in range(count)]

    def reorg(self, depth: int, length: int | None = None) -> list[SimulatedBlock]:
        """Replace the newest `depth` blocks by others, one more of them unless told otherwise."""
        del self.canonical[len(self.canonical) - depth :]
        return self.mine(depth + 1 if length is None else length)

    def _mine(self, change: Change) -> SimulatedBlock:
        receipts = [self._draw_logs() for _ in range(self.random.randint(1, TRANSACTIONS_MAX))]
        block = self._build(self.head, receipts, change)
        self.canonical.append(block)
        self.blocks[block.hash] = block
        return block

    def _draw_logs(self) -> list[Log]:
        return [
            Log(
                self.random.choice(self.addresses),
                tuple(self.random.sample(self.topics, self.random.randint(0, 4))),
                self.random.randbytes(self.random.randint(0, 80)),
            )
            for _ in range(self.random.randint(1, LOGS_MAX))
        ]

    def _build(self, parent: SimulatedBlock | None, logs: list[list[Log]], change: Change) -> SimulatedBlock:
        receipts = tuple(build_receipt(2, GAS_EACH * (at + 1), part) for at, part in enumerate(logs))
        raw_receipts = tuple(map(encode_receipt, receipts))
        transactions = tuple(self._build_transaction() for _ in logs)
        header = Header(
            parent_hash=parent.hash if parent else bytes(32),
            ommers_hash=NO_OMMERS,
            beneficiary=self.random.randbytes(20),
            state_root=self.random.randbytes(32),
            transactions_root=compute_ordered_root(transactions),
            receipts_root=compute_ordered_root(raw_receipts),
            logs_bloom=compute_bloom(log for part in logs for log in part),
            difficulty=0,
            number=parent.header.number + 1 if parent else 0,
            gas_limit=30_000_000,
            gas_used=GAS_EACH * len(logs),
            timestamp=parent.header.timestamp + BLOCK_TIME_S if parent else GENESIS_TIME_S,
            extra_data=b"",
            mix_hash=self.random.randbytes(32),
            nonce=bytes(8),
            base_fee=10**9,
            withdrawals_root=EMPTY_ROOT,
            blob_gas_used=0,
            excess_blob_gas=0,
            parent_beacon_root=self.random.randbytes(32),
            requests_hash=self.random.randbytes(32),
        )
        encoded = encode_header(change(header))
        raw = RawBlock(encoded, transactions, raw_receipts)
        return SimulatedBlock(change(header), compute_hash(encoded), raw, receipts)

    def _build_transaction(self) -> bytes:
        """Of type 2, signed by nobody: no root asks for a true signature."""
        fields: list[int | bytes] = [self.chain_id, self.random.randrange(10**6), 1, 10**9, GAS_EACH]
        fields += [self.random.choice(self.addresses), self.random.randrange(10**18), self.random.randbytes(40)]
        signature = [self.random.randrange(2), self.random.getrandbits(250), self.random.getrandbits(250)]
        items = [encode_value(value) for value in fields]
        return b"\2" + rlp.encode([*items, [], *map(encode_value, signature)])


def encode_value(value: int | bytes) -> rlp.Item:
    return value if isinstance(value, bytes) else rlp.encode_integer(value)


def build_receipt(type_: int, gas: int, logs: list[Log]) -> Receipt:
    return Receipt(type_, b"\1", gas, compute_bloom(logs), tuple(logs))

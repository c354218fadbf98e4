"""Blocks from one node, by the methods every node has and the better ones where it has them.

- Requests go out in batches, several at a time. A node that refuses a batch, because it is too large for it or its
  answer would be, is asked for half of it, down to single calls.
- Receipts: `debug_getRawReceipts` where it is served, else `eth_getBlockReceipts`, else one by one.
- Just after the head a node may know a block and not its receipts yet: it is asked a few times before we give up.
"""

import random
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from proofcast.chain.io.answers import get_field, get_list, parse_bytes, parse_quantity
from proofcast.chain.io.rebuild import rebuild_header, rebuild_receipt, rebuild_transaction
from proofcast.chain.io.rpc import Json, NodeRefused, RpcClient
from proofcast.chain.profile import get_profile
from proofcast.chain.segment import BlockId
from proofcast.chain.source import BlockSource
from proofcast.chain.trust import Trust
from proofcast.errors import Reason, Unavailable
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.header import compute_hash
from proofcast.event import Finality

Call = tuple[str, Sequence[Json]]

BATCH_MAX = 32
"""Calls in one request: enough to hide the latency, below what public nodes allow."""
REQUESTS_MAX = 4
"""At a time; more gets one banned from public nodes."""
ATTEMPTS_MAX = 5
PAUSE_S = 0.05
"""Before receipts that were not there yet are asked for again; doubles each time."""
UNSERVED_CODES = frozenset({-32601, -32600, -32004})
"""By which nodes say that they have no such method; other refusals concern the call."""


class RpcSource:
    trust = Trust.LINKED

    def __init__(self, url: str, *, pause_s: float = PAUSE_S) -> None:
        self._rpc = RpcClient(url)
        weakref.finalize(self, self._rpc.close)  # so that a source needs no closing, whichever process opened it
        self._pause_s = pause_s
        self._batch = BATCH_MAX
        self._receipt_methods = ["debug_getRawReceipts", "eth_getBlockReceipts"]
        """Best first; those that turn out not to be served are removed."""

    @property
    def name(self) -> str:
        return self._rpc.host

    @property
    def alternatives(self) -> Sequence[BlockSource]:
        return (self,)

    def get_chain_id(self) -> int:
        return self._chain_id

    @cached_property
    def _chain_id(self) -> int:
        return parse_quantity(self._rpc.call("eth_chainId"))

    def get_head(self, finality: Finality) -> BlockId | None:
        try:
            block = self._rpc.call("eth_getBlockByNumber", str(finality), False)
        except NodeRefused:
            if finality is Finality.LATEST:
                raise
            return None  # the node knows no such tag
        return None if block is None else get_block_id(block)

    def get_headers(self, first: int, last: int) -> list[bytes]:
        return [self._read_header(block) for block in self._get_answers(first, last, with_transactions=False)]

    def get_block_by_hash(self, block_hash: bytes) -> RawBlock:
        (block,) = self._ask([("eth_getBlockByHash", (encode_hex(block_hash), False))])
        return RawBlock(self._read_header(block), None, self._get_receipts([block])[0])

    def get_blocks(
        self, first: int, last: int, *, with_receipts: bool = True, with_transactions: bool = False
    ) -> list[RawBlock]:
        blocks = self._get_answers(first, last, with_transactions=with_transactions)
        receipts = self._get_receipts(blocks) if with_receipts else [None] * len(blocks)
        bodies = [rebuild_bodies(block) if with_transactions else None for block in blocks]
        return [
            RawBlock(self._read_header(block), body, outcomes)
            for block, body, outcomes in zip(blocks, bodies, receipts, strict=True)
        ]

    def _get_answers(self, first: int, last: int, *, with_transactions: bool) -> list[Json]:
        numbers = range(first, last + 1)
        return self._ask([("eth_getBlockByNumber", (hex(number), with_transactions)) for number in numbers])

    def _read_header(self, block: Json) -> bytes:
        """Rebuilt, or where a fork added fields that we do not know, as the node's own bytes if it gives them."""
        rebuilt = rebuild_header(block)
        if compute_hash(rebuilt) == parse_bytes(get_field(block, "hash")):
            return rebuilt
        try:
            return parse_bytes(self._rpc.call("debug_getRawHeader", get_field(block, "hash")))
        except NodeRefused:
            return rebuilt

    # --- receipts

    def _get_receipts(self, blocks: Sequence[Json]) -> list[tuple[bytes, ...]]:
        """Of each block, asked for by its hash so that a reorg in between cannot mix two branches."""
        for method in list(self._receipt_methods):
            try:
                answers = self._ask([(method, (get_field(block, "hash"),)) for block in blocks])
            except NodeRefused as error:
                if error.code in UNSERVED_CODES:
                    self._receipt_methods.remove(method)
                continue
            return [self._rebuild_receipts(answer) for answer in answers]
        return [self._rebuild_receipts(self._get_single_receipts(block)) for block in blocks]

    def _get_single_receipts(self, block: Json) -> list[Json]:
        hashes = get_list(get_field(block, "transactions"), "transactions")
        names = [get_field(entry, "hash") if isinstance(entry, dict) else entry for entry in hashes]
        return self._ask([("eth_getTransactionReceipt", (name,)) for name in names])

    def _rebuild_receipts(self, answer: Json) -> tuple[bytes, ...]:
        receipts = get_list(answer, "receipts")
        if receipts and isinstance(receipts[0], str):
            return tuple(map(parse_bytes, receipts))
        types = get_profile(self.get_chain_id()).receipt_types
        return tuple(rebuild_receipt(receipt, types) for receipt in receipts)

    # --- asking

    def _ask(self, calls: Sequence[Call]) -> list[Json]:
        """Answers to all calls; those that are null are asked for again, since the node may be about to know."""
        answers = self._exchange(calls)
        for attempt in range(ATTEMPTS_MAX):
            missing = [index for index, answer in enumerate(answers) if answer is None]
            if not missing:
                return answers
            time.sleep(self._pause_s * 2**attempt * random.uniform(0.5, 1))
            for index, answer in zip(missing, self._exchange([calls[index] for index in missing]), strict=True):
                answers[index] = answer
        return [self._require(answer, call) for answer, call in zip(answers, calls, strict=True)]

    def _require(self, answer: Json, call: Call) -> Json:
        if answer is None:
            raise Unavailable(
                Reason.NOT_YET,
                f"the node at `{self.name}` does not know `{call[1][0]}` (`{call[0]}`)",
                hint="it may be behind, or have dropped the block in a reorg; try again later",
            )
        return answer

    def _exchange(self, calls: Sequence[Call]) -> list[Json]:
        size = self._batch
        batches = [calls[at : at + size] for at in range(0, len(calls), size)]
        return list(flatten(run_side_by_side(self._exchange_batch, batches)))

    def _exchange_batch(self, calls: Sequence[Call]) -> list[Json]:
        try:
            return self._rpc.batch(calls)
        except NodeRefused as error:
            if len(calls) == 1 or error.code in UNSERVED_CODES - {-32600}:
                raise
        half = (len(calls) + 1) // 2
        answers = self._exchange_batch(calls[:half]) + self._exchange_batch(calls[half:])
        self._batch = min(self._batch, half)  # what it took this time
        return answers


def run_side_by_side(
    work: Callable[[Sequence[Call]], list[Json]], batches: Sequence[Sequence[Call]]
) -> Iterable[list[Json]]:
    if len(batches) <= 1:
        return map(work, batches)
    with ThreadPoolExecutor(min(REQUESTS_MAX, len(batches))) as pool:
        return list(pool.map(work, batches))


def flatten(lists: Iterable[list[Json]]) -> Iterable[Json]:
    return (answer for answers in lists for answer in answers)


def get_block_id(block: Json) -> BlockId:
    return BlockId(parse_quantity(get_field(block, "number")), parse_bytes(get_field(block, "hash")))


def rebuild_bodies(block: Json) -> tuple[bytes, ...]:
    return tuple(map(rebuild_transaction, get_list(get_field(block, "transactions"), "transactions")))


def encode_hex(data: bytes) -> str:
    return f"0x{data.hex()}"

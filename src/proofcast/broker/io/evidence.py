"""Evidence on demand, made of what the feed keeps: neither Spark nor a node is needed for it.

A stream that was asked for with `evidence=1` has two more kinds of events, each before what it is needed for:

- `headers`: consecutive headers, one after the other in base64. The first is the child of one that the reader named
  (`linked`) or was sent before; where it named none, there is only that of the event's own block.
- `evidence`: of the first delivered log of a receipt. The receipt is in it, so it serves the receipt's other logs too.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from proofcast.broker.io.hub import Batch
from proofcast.chain.evidence import LENGTH_MAX, EvidenceBuilder, encode_evidence
from proofcast.chain.profile import get_profile
from proofcast.chain.segment import BlockId
from proofcast.chain.trust import Trust
from proofcast.chain.verify import verify_block
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.event import Position, Step
from proofcast.feed.io.headers import Headers
from proofcast.feed.io.sqlite import Journal

EVENT_ID = re.compile(r"(\d{1,20})/(\d{12,20})/(\d{6,10})/([0-9a-f]{64})/(apply|undo)(-\d+)?")
"""As `cloudevents.compute_id` writes it."""
BLOCKS_KEPT, FRAMES_KEPT = 8, 256
"""In memory, for all streams together: those of the newest blocks are wanted by everybody."""
LINKED_MAX = 32
"""Hashes that a reader may name: enough to go back a million blocks by doubling."""
HEADERS_BYTES_MAX = LENGTH_MAX // 2
"""Of the path in one evidence."""


class EvidenceMaker:
    def __init__(self, folder: Path) -> None:
        self._journal, self.headers = Journal(folder), Headers(folder)
        self._get_builder = lru_cache(BLOCKS_KEPT)(self._open_block)
        self.get_frame = lru_cache(FRAMES_KEPT)(self._build_frame)

    def close(self) -> None:
        self._journal.close()
        self.headers.close()

    def build(self, event_id: str, trusted: bytes = b"") -> bytes:
        """Evidence that the log is in its block, with the headers from there to a trusted one if that is named."""
        parts = EVENT_ID.fullmatch(event_id)
        if parts is None:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"`{ascii(event_id[:120])[1:-1]}` is no event's id",
                hint="write it as it was delivered",
            )
        chain_id, number, log_index, block_hash = int(parts[1]), int(parts[2]), int(parts[3]), bytes.fromhex(parts[4])
        builder = self._get_builder(chain_id, block_hash)
        path = self._read_path(BlockId(number, block_hash), trusted) if trusted else ()
        return encode_evidence(builder.build(log_index, path))

    def find_timestamp(self, block_hash: bytes) -> int | None:
        """Of a block, in seconds since 1970; None where its header is not kept."""
        found = self.headers.find(block_hash)
        return found.timestamp if found else None

    def get_finalized(self) -> BlockId:
        return self._journal.read_state().finalized

    def _read_path(self, block: BlockId, trusted: bytes) -> tuple[bytes, ...]:
        goal = self.headers.get(trusted).id
        if not self.headers.leads(block, goal):
            raise Unavailable(
                Reason.NOT_YET,
                f"block `{block}` is no ancestor of block `{goal}`",
                hint="trust a block that came later, on the same chain",
            )
        path: list[bytes] = []
        while block != goal:
            page = self.headers.read_path(block, goal)
            path += [header.raw for header in page]
            block = page[-1].id
            if sum(map(len, path)) > HEADERS_BYTES_MAX:
                raise InvalidRequest(
                    Reason.BAD_ARGUMENT,
                    f"from the event to block `{goal}` there are more headers than evidence may have",
                    hint="trust a block nearer to the event",
                )
        return tuple(path)

    def _open_block(self, chain_id: int, block_hash: bytes) -> EvidenceBuilder:
        raw = self._journal.find_block(block_hash) if chain_id == self._journal.get_chain_id() else None
        if raw is None:
            raise Unavailable(
                Reason.NOT_YET,
                f"block `0x{block_hash.hex()}` of chain `{chain_id}` is not kept here",
                hint="ask a broker that follows this contract and chain",
            )
        trust = self._journal.find_trust(block_hash) or Trust.LINKED
        return EvidenceBuilder(verify_block(raw, get_profile(chain_id), block_hash, trust=trust))

    def _build_frame(self, chain_id: int, block_hash: bytes, transaction_index: int, log_index: int) -> bytes:
        return encode_frame("evidence", encode_evidence(self._get_builder(chain_id, block_hash).build(log_index)))


class EvidenceStream:
    """What one reader was sent already, and so what it still needs."""

    def __init__(self, maker: EvidenceMaker, linked: Sequence[bytes] = ()) -> None:
        """`linked` are blocks that the reader has verified, the best first."""
        self._maker = maker
        found = (maker.headers.find_id(block_hash) for block_hash in linked)
        self._linked = next((block for block in found if block), None)
        self._lowest = self._linked.number if self._linked else 0
        """The lowest block that the reader knows to lead to the linked one."""
        self._receipt: tuple[bytes, int] | None = None
        self._is_begun = False
        """The first batch only says that we are there: history comes before the newest block."""

    def encode(self, batch: Batch) -> Iterator[bytes]:
        """The frames of a batch, each after those that it needs; a later heartbeat's is the header of its block."""
        if not batch.entries and self._is_begun:
            yield from self.link(batch.newest)
        self._is_begun = True
        for entry in batch.entries:
            if entry.move.step is Step.APPLY:
                yield from self.introduce(entry.delivery.event.position)
            yield entry.frame

    def introduce(self, at: Position) -> Iterator[bytes]:
        """What must come before the delivery of a log that is applied."""
        receipt = (at.block_hash, at.transaction_index)
        if self._receipt != receipt:
            yield from self.link(BlockId(at.block_number, at.block_hash))
            yield self._maker.get_frame(at.chain_id, *receipt, at.log_index)
            self._receipt = receipt

    def link(self, block: BlockId) -> Iterator[bytes]:
        """The headers by which the reader knows this block."""
        headers = self._maker.headers
        if self._linked is None:
            yield from self._begin(block)
        elif not headers.leads(block, self._linked):
            yield from self._send_path(headers.find_fork(self._linked, block), block)
            self._linked = block
        elif block.number < self._lowest:
            yield encode_frame("headers", headers.get(block.hash).raw)
            yield from self._send_path(block, self._linked)
            self._lowest = block.number

    def _begin(self, block: BlockId) -> Iterator[bytes]:
        """From the finalized block, which no reorg takes away, or from the block itself if that is older."""
        finalized = self._maker.get_finalized()
        root = finalized if finalized.number < block.number else block
        found = self._maker.headers.find(root.hash)
        if found is not None:
            yield encode_frame("headers", found.raw)
        yield from self._send_path(root, block)
        self._linked, self._lowest = block, root.number

    def _send_path(self, after: BlockId, to: BlockId) -> Iterator[bytes]:
        while after != to:
            page = self._maker.headers.read_path(after, to)
            yield encode_frame("headers", b"".join(header.raw for header in page))
            after = page[-1].id


def encode_frame(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), base64.b64encode(data))


def parse_linked(text: str) -> list[bytes]:
    """Hashes, the best first, as a reader names them."""
    try:
        found = [bytes.fromhex(word.removeprefix("0x")) for word in text.split(",") if word]
    except ValueError:
        found = [b""]
    if any(len(block_hash) != 32 for block_hash in found) or len(found) > LINKED_MAX:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`{ascii(text[:80])[1:-1]}` are no block hashes",
            hint=f"write at most {LINKED_MAX}, each as 0x and 64 hexadecimal digits, with commas between",
        )
    return found

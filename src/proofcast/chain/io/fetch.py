"""Verified blocks out of any source: what every reader of a chain calls.

The blocks between two hashes are fetched in three movements: the headers, which must link from one hash to the other;
then receipts, of those blocks only whose bloom may hold what is wanted; then each block is checked under its header. An
answer that is false or does not come is asked of the next of the source's alternatives.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from proofcast.chain.io.alternatives import ask_in_turn
from proofcast.chain.profile import Blooms, ChainProfile
from proofcast.chain.segment import BlockId, Segment, split_segment
from proofcast.chain.source import BlockSource
from proofcast.chain.verify import (
    VerifiedBlock,
    VerifiedHeader,
    disagree,
    verify_block,
    verify_body,
    verify_count,
    verify_headers,
    verify_linked,
)
from proofcast.errors import InvalidRequest, Reason
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.bloom import LogFilter, may_match

HEADERS_MAX = 1_024
"""Asked for at a time: less than a megabyte."""
BLOCKS_MAX = 32
"""Fetched at a time and held in memory: some tens of megabytes where blocks are full."""


# --- the header pass


def link_range(
    source: BlockSource, first: int, last: int, length: int, checkpoint: BlockId | None = None
) -> list[Segment]:
    """The range as segments of at most `length` blocks, after all its headers were seen to link.

    A checkpoint is a block that the caller trusts, from the one before the range to a thousand after it. The blocks up
    to it are then proven, whatever the source says.
    """
    verify_range(first, last, checkpoint)
    end = max(last, checkpoint.number) if checkpoint else last
    parent_hash, hashes = link_headers(source, first, end)
    if checkpoint is not None:
        found = (parent_hash, *hashes)[checkpoint.number - first + 1]
        if found != checkpoint.hash:
            raise disagree(f"the hash of block `{checkpoint.number}`", found, checkpoint.hash)
    wanted = hashes[: last - first + 1]
    return split_segment(Segment(first, last, parent_hash, wanted[-1], source.trust), wanted, length)


def verify_range(first: int, last: int, checkpoint: BlockId | None) -> None:
    if not 0 <= first <= last:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"there are no blocks from `{first}` to `{last}`",
            hint="the first block comes before the last",
        )
    if checkpoint is not None and not first - 1 <= checkpoint.number <= last + HEADERS_MAX:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"the checkpoint `{checkpoint}` is not near the blocks `{first}` to `{last}`",
            hint=f"give one from `{first - 1}` to `{last + HEADERS_MAX}`",
        )


def link_headers(source: BlockSource, first: int, last: int) -> tuple[bytes, list[bytes]]:
    """The first block's parent hash, and the hash of every block."""
    parent, parent_hash, hashes = None, b"", list[bytes]()
    for start in range(first, last + 1, HEADERS_MAX):
        end = min(start + HEADERS_MAX - 1, last)
        headers = verify_linked(source.get_headers(start, end), start, end, parent, source.trust)
        parent_hash = parent_hash or headers[0].header.parent_hash
        hashes += [header.hash for header in headers]
        parent = headers[-1].link.id
    return parent_hash, hashes


# --- blocks


def fetch_blocks(
    source: BlockSource,
    segment: Segment,
    profile: ChainProfile,
    log_filter: LogFilter | None = None,
    *,
    with_transactions: bool = False,
) -> Iterator[VerifiedBlock]:
    """Every block of the segment, in order.

    With a filter, a block whose header's bloom proves that it has no such log comes without receipts and columns;
    where the chain's blooms prove nothing, all receipts are fetched.
    """
    headers = ask_in_turn(source, lambda one: verify_headers(one.get_headers(segment.first, segment.last), segment))
    may_skip = log_filter is not None and profile.blooms is Blooms.CONSENSUS

    def is_wanted(header: VerifiedHeader) -> bool:
        return not may_skip or log_filter is None or may_match(header.header.logs_bloom, log_filter)

    for wanted, run in groupby(headers, is_wanted):
        if wanted:
            yield from fetch_run(source, list(run), profile, with_transactions=with_transactions)
        else:
            yield from (keep_header(header) for header in run)


def fetch_run(
    source: BlockSource, headers: Sequence[VerifiedHeader], profile: ChainProfile, *, with_transactions: bool
) -> Iterator[VerifiedBlock]:
    """The blocks under consecutive headers, with their receipts."""
    for at in range(0, len(headers), BLOCKS_MAX):
        chunk = headers[at : at + BLOCKS_MAX]
        ask = partial(fetch_chunk, headers=chunk, profile=profile, with_transactions=with_transactions)
        yield from ask_in_turn(source, ask)


def fetch_chunk(
    source: BlockSource, *, headers: Sequence[VerifiedHeader], profile: ChainProfile, with_transactions: bool
) -> list[VerifiedBlock]:
    first, last = headers[0].header.number, headers[-1].header.number
    raws = source.get_blocks(first, last, with_transactions=with_transactions)
    verify_count("blocks", first, last, len(raws))
    return [verify_body(raw, header, profile) for raw, header in zip(raws, headers, strict=True)]


def keep_header(header: VerifiedHeader) -> VerifiedBlock:
    return VerifiedBlock(header.header, header.hash, RawBlock(header.raw, None, None), header.trust, None)


def fetch_block(source: BlockSource, block_hash: bytes, profile: ChainProfile) -> VerifiedBlock:
    """The one block that has the hash, with its receipts."""
    return ask_in_turn(
        source, lambda one: verify_block(one.get_block_by_hash(block_hash), profile, block_hash, None, source.trust)
    )

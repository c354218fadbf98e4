"""The one verifier of blocks: bytes that anybody sent in, checked objects or an error naming both values out.

A header is accepted if

- its bytes are the one canonical encoding, of any fork;
- its hash is the expected one, where somebody knows it;
- its number and parent hash follow its parent's, where that is given.

A block is accepted if, besides,

- its transactions, where given, have the header's transactions root;
- its receipts, where given, have the header's receipts root: then they are all of them, in their order;
- there are as many receipts as transactions;
- every receipt's bloom is that of its logs, and the header's bloom that of the receipts (unless the chain has none);
- cumulative gas never falls and ends at what the header says was used.

Positions of logs are counted, not read, so they have neither gaps nor repeats.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import gt

from proofcast.chain.profile import Blooms, ChainProfile
from proofcast.chain.segment import BlockId, Segment
from proofcast.chain.steps import BlockLink, refuse_link
from proofcast.chain.trust import Trust
from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.columns import Buffers, LogColumns
from proofcast.ethereum.header import Header, compute_hash
from proofcast.ethereum.kernel import check_receipts, compute_ordered_root, parse_header

HINT = "the source is wrong or lies about this block; ask another one"


@dataclass(frozen=True, slots=True)
class VerifiedHeader:
    header: Header
    hash: bytes
    raw: bytes
    trust: Trust

    @property
    def link(self) -> BlockLink:
        return BlockLink(self.header.number, self.hash, self.header.parent_hash, self.trust)


@dataclass(frozen=True, slots=True)
class VerifiedBlock:
    header: Header
    hash: bytes
    raw: RawBlock
    trust: Trust
    columns: LogColumns | None
    """None where no receipts were given; then the header's bloom is all that is known of the logs."""

    @property
    def link(self) -> BlockLink:
        return BlockLink(self.header.number, self.hash, self.header.parent_hash, self.trust)


def verify_header(
    raw: bytes, expected_hash: bytes | None = None, parent: BlockId | None = None, trust: Trust = Trust.LINKED
) -> VerifiedHeader:
    header, block_hash = parse_header(raw), compute_hash(raw)
    if expected_hash is not None and block_hash != expected_hash:
        raise disagree(f"the hash of block `{header.number}`", block_hash, expected_hash)
    verified = VerifiedHeader(header, block_hash, raw, trust)
    if parent is not None and (header.number, header.parent_hash) != (parent.number + 1, parent.hash):
        raise refuse_link(verified.link, parent)
    return verified


def verify_linked(
    raws: Sequence[bytes], first: int, last: int, parent: BlockId | None, trust: Trust
) -> list[VerifiedHeader]:
    """Headers `first` to `last`, each the parent of the next; nothing is said about where they lead."""
    verify_count("headers", first, last, len(raws))
    verified: list[VerifiedHeader] = []
    for raw in raws:
        verified.append(verify_header(raw, None, parent, trust))
        parent = verified[-1].link.id
    found = verified[0].header.number
    if found != first:
        raise InvalidInput(Reason.DISAGREES, f"block `{found}` came where `{first}` was asked for", hint=HINT)
    return verified


def verify_headers(raws: Sequence[bytes], segment: Segment) -> list[VerifiedHeader]:
    """All headers of a segment; only together do they prove that each of them leads to its last hash."""
    parent = BlockId(segment.first - 1, segment.parent_hash)
    headers = verify_linked(raws, segment.first, segment.last, parent, segment.trust)
    if headers[-1].hash != segment.last_hash:
        raise disagree(f"the hash of block `{segment.last}`", headers[-1].hash, segment.last_hash)
    return headers


def verify_count(what: str, first: int, last: int, count: int) -> None:
    if count != last - first + 1:
        raise InvalidInput(
            Reason.DISAGREES,
            f"`{count}` {what} came where `{last - first + 1}` were asked for, `{first}` to `{last}`",
            hint=HINT,
        )


def verify_block(
    raw: RawBlock,
    profile: ChainProfile,
    expected_hash: bytes | None = None,
    parent: BlockId | None = None,
    trust: Trust = Trust.LINKED,
) -> VerifiedBlock:
    return verify_body(raw, verify_header(raw.header, expected_hash, parent, trust), profile)


def verify_body(raw: RawBlock, checked: VerifiedHeader, profile: ChainProfile) -> VerifiedBlock:
    """A block under a header that was verified before."""
    header = checked.header
    if raw.header != checked.raw:
        raise disagree(f"the hash of block `{header.number}`", compute_hash(raw.header), checked.hash)
    verify_transactions(raw, header)
    columns = None if raw.receipts is None else verify_receipts(raw.receipts, header, profile)
    return VerifiedBlock(header, checked.hash, raw, checked.trust, columns)


def verify_transactions(raw: RawBlock, header: Header) -> None:
    if raw.transactions is None:
        return
    root = compute_ordered_root(raw.transactions)
    if root != header.transactions_root:
        raise disagree(f"the transactions root of block `{header.number}`", root, header.transactions_root)
    if raw.receipts is not None and len(raw.receipts) != len(raw.transactions):
        raise InvalidInput(
            Reason.DISAGREES,
            f"block `{header.number}` has `{len(raw.receipts)}` receipts of `{len(raw.transactions)}` transactions",
            hint=HINT,
        )


def verify_receipts(receipts: tuple[bytes, ...], header: Header, profile: ChainProfile) -> LogColumns:
    bloom = header.logs_bloom if profile.blooms is Blooms.CONSENSUS else None
    try:
        columns = check_receipts(receipts, header.receipts_root, bloom)
    except InvalidInput as error:
        raise InvalidInput(error.reason, f"block `{header.number}`: {error}", hint=error.hint) from error
    verify_gas(columns, header)
    return columns


def verify_gas(columns: LogColumns, header: Header) -> None:
    used = read_integers(columns.cumulative_gas)
    if any(map(gt, used, islice(used, 1, None))):
        index = next(index for index, (before, gas) in enumerate(pairwise(used), 1) if before > gas)
        raise InvalidInput(
            Reason.DISAGREES,
            f"in block `{header.number}` the gas used falls from `{used[index - 1]}` to `{used[index]}` "
            f"at receipt `{index}`",
            hint=HINT,
        )
    total = used[-1] if used else 0
    if total != header.gas_used:
        raise InvalidInput(
            Reason.DISAGREES,
            f"the receipts of block `{header.number}` used `{total}` gas, its header says `{header.gas_used}`",
            hint=HINT,
        )


def read_integers(column: Buffers) -> Sequence[int]:
    """The values of a column of integers that has no nulls."""
    values = array("q")
    values.frombytes(column[1] or b"")
    return values


def disagree(what: str, have: bytes, need: bytes) -> InvalidInput:
    return InvalidInput(
        Reason.DISAGREES,
        f"{what} is `0x{have.hex()}`, expected was `0x{need.hex()}`",
        hint=HINT,
        have=have.hex(),
        need=need.hex(),
    )

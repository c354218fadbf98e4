"""Evidence: what a stranger needs to check one log by himself, offline, from one block hash that he trusts.

It is one item of RLP, with exactly one encoding:

    ["proofcast evidence 1", trust, [header...], transaction index, log position, log hash,
     [node of the receipt's proof...], [node of the transaction's proof...]]

`trust` is its maker's word for the block and no more than that. A verifier accepts the evidence if

- it is encoded so, in at most 8 megabytes;
- the headers, each the parent of the next, lead from the log's block to the trusted hash;
- the receipt's proof leads from the first header's receipts root to the transaction index;
- the receipt has a log at the position, counted within the receipt, and that log has the log hash;
- the transaction's proof, where there is one, leads from the header's transactions root to the same index.

So every byte matters but none is believed: changed evidence is refused, and true evidence needs no trusted maker. A
log's number within its whole block is not proven by its receipt alone, hence the position within the receipt.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from proofcast.chain.segment import BlockId
from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedBlock, VerifiedHeader, disagree, verify_header
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.ethereum import rlp
from proofcast.ethereum.header import Header
from proofcast.ethereum.keccak import HASH_LENGTH, keccak256
from proofcast.ethereum.receipt import Log, Receipt, parse_receipt
from proofcast.ethereum.rlp import Item, Span
from proofcast.ethereum.trie import Prover, verify_proof

FORMAT = b"proofcast evidence 1"
LENGTH_MAX = 8 << 20
"""Bytes: a path of ten thousand headers."""
FIELDS = 8
INDEX_BITS = 32


@dataclass(frozen=True, slots=True)
class Evidence:
    trust: Trust
    headers: tuple[bytes, ...]
    """Of the log's block, then of its descendants up to the trusted one."""
    transaction_index: int
    log_position: int
    """Among the logs of the transaction's receipt, from 0."""
    log_hash: bytes
    receipt_proof: tuple[bytes, ...]
    transaction_proof: tuple[bytes, ...]
    """Empty where the maker had no transactions."""


@dataclass(frozen=True, slots=True)
class ProvenLog:
    """What evidence proves to whoever believes the trusted hash."""

    log: Log
    header: Header
    block_hash: bytes
    transaction_index: int
    transaction_hash: bytes | None
    log_position: int
    claimed_trust: Trust


# --- building


def build_evidence(block: VerifiedBlock, log_index: int, path: Sequence[VerifiedHeader] = ()) -> Evidence:
    """Evidence of a log by its number within the block; `path` leads from the block's child to what will be trusted."""
    return EvidenceBuilder(block).build(log_index, tuple(header.raw for header in path))


class EvidenceBuilder:
    """Evidence of any log of one block; what all of them share is computed once."""

    def __init__(self, block: VerifiedBlock) -> None:
        if block.raw.receipts is None:
            raise refuse_request(f"block `{block.link.id}` came without receipts", "fetch the block with its receipts")
        self._block = block
        self._receipts = [parse_receipt(raw) for raw in block.raw.receipts]
        self._receipt_prover = Prover(block.raw.receipts)
        self._transaction_prover = Prover(block.raw.transactions) if block.raw.transactions else None

    def build(self, log_index: int, path: tuple[bytes, ...] = ()) -> Evidence:
        """`path` is headers, from the block's child to what will be trusted."""
        index, position = find_log(self._receipts, log_index)
        return Evidence(
            self._block.trust,
            (self._block.raw.header, *path),
            index,
            position,
            compute_log_hash(self._receipts[index].logs[position]),
            self._receipt_prover.build(index),
            self._transaction_prover.build(index) if self._transaction_prover else (),
        )


def find_log(receipts: Sequence[Receipt], log_index: int) -> tuple[int, int]:
    """Transaction index, and position within its receipt."""
    ends = list(accumulate(len(receipt.logs) for receipt in receipts))
    if not 0 <= log_index < (ends[-1] if ends else 0):
        raise refuse_request(f"the block has no log `{log_index}`", f"it has `{ends[-1] if ends else 0}`, from 0 on")
    index = bisect_right(ends, log_index)
    return index, log_index - (ends[index - 1] if index else 0)


def compute_log_hash(log: Log) -> bytes:
    return keccak256(rlp.encode([log.address, list(log.topics), log.data]))


def encode_evidence(evidence: Evidence) -> bytes:
    headers: list[Item] = [rlp.decode(header) for header in evidence.headers]
    return rlp.encode(
        [
            FORMAT,
            evidence.trust.encode(),
            headers,
            rlp.encode_integer(evidence.transaction_index),
            rlp.encode_integer(evidence.log_position),
            evidence.log_hash,
            list(evidence.receipt_proof),
            list(evidence.transaction_proof),
        ]
    )


# --- verifying


def parse_evidence(data: bytes) -> Evidence:
    """The parts; nothing is proven yet."""
    if len(data) > LENGTH_MAX:
        raise refuse_evidence(f"`{len(data)}` bytes are more than evidence may have (`{LENGTH_MAX}`)")
    whole = rlp.read_whole(data)
    parts = rlp.read_children(data, whole)
    rlp.require_count(parts, whole, FIELDS, FIELDS)
    form, trust, headers, index, position, log_hash, receipt_proof, transaction_proof = parts
    if rlp.get_string(data, form) != FORMAT:
        raise refuse_evidence(f"the evidence does not begin with `{FORMAT.decode()}`")
    return Evidence(
        parse_trust(rlp.get_string(data, trust)),
        tuple(data[child.position : child.end] for child in rlp.read_children(data, headers)),
        rlp.get_integer(data, index, INDEX_BITS),
        rlp.get_integer(data, position, INDEX_BITS),
        rlp.get_string(data, log_hash, HASH_LENGTH),
        get_nodes(data, receipt_proof),
        get_nodes(data, transaction_proof),
    )


def get_nodes(data: bytes, span: Span) -> tuple[bytes, ...]:
    return tuple(rlp.get_string(data, child) for child in rlp.read_children(data, span))


def parse_trust(word: bytes) -> Trust:
    try:
        return Trust(word.decode("ascii"))
    except ValueError:
        raise refuse_evidence(f"`{word!r}` is no word of trust") from None


def verify_evidence(data: bytes, trusted_hash: bytes) -> ProvenLog:
    evidence = parse_evidence(data)
    block = verify_path(evidence.headers, trusted_hash)
    index = evidence.transaction_index
    log = verify_log(verify_receipt(evidence, block.header), evidence)
    transaction_hash = verify_transaction(block.header, index, evidence.transaction_proof)
    return ProvenLog(log, block.header, block.hash, index, transaction_hash, evidence.log_position, evidence.trust)


def verify_path(headers: Sequence[bytes], trusted_hash: bytes) -> VerifiedHeader:
    """The log's header, from which the others lead to the trusted hash."""
    if not headers:
        raise refuse_evidence("the evidence has no header")
    parent: BlockId | None = None
    verified = []
    for raw in headers:
        verified.append(verify_header(raw, None, parent))
        parent = verified[-1].link.id
    if verified[-1].hash != trusted_hash:
        raise disagree("the hash to which the evidence leads", verified[-1].hash, trusted_hash)
    return verified[0]


def verify_receipt(evidence: Evidence, header: Header) -> Receipt:
    """The whole receipt in which the log stands."""
    return parse_receipt(verify_proof(header.receipts_root, evidence.transaction_index, evidence.receipt_proof))


def verify_log(receipt: Receipt, evidence: Evidence) -> Log:
    if evidence.log_position >= len(receipt.logs):
        raise refuse_evidence(
            f"the receipt has `{len(receipt.logs)}` logs, so none at position `{evidence.log_position}`"
        )
    log = receipt.logs[evidence.log_position]
    if compute_log_hash(log) != evidence.log_hash:
        raise disagree(f"the hash of log `{evidence.log_position}`", compute_log_hash(log), evidence.log_hash)
    return log


def verify_transaction(header: Header, index: int, proof: tuple[bytes, ...]) -> bytes | None:
    """The transaction's hash, where the evidence proves it."""
    return keccak256(verify_proof(header.transactions_root, index, proof)) if proof else None


def refuse_evidence(message: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, message, hint="get the evidence again, from another source")


def refuse_request(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)

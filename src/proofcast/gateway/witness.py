"""Checks what gateways carry, for a peer that has neither broker nor node but trusts one block hash.

An envelope is accepted if

- its headers are consecutive, and the evidence's block is among them;
- they join what is known: a header at or behind the event's block is the trusted one or leads to it (`trusted`), or a
  block before the event's is the trusted one or stands on it (`linked`);
- the evidence proves a receipt of that block, to the last byte;
- the log at its place, read as the contract writes publications, gives exactly the event that is carried;
- it is of the contract, and of the topic if one was named.

What an accepted envelope's headers add is remembered, so that the next one may join there. As everywhere, `linked` says
that nobody can put the block on another past, and that somebody may have made it up. That an event was undone is the
gateway's word; let it carry finalized events where that matters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from proofcast.chain.evidence import Evidence, parse_evidence, verify_evidence, verify_path, verify_receipt
from proofcast.chain.segment import BlockId
from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedHeader, verify_header
from proofcast.client.checking import ProvenReceipt, Wanted, verify_event
from proofcast.client.lineage import TRUSTED
from proofcast.cloudevents import parse_structured
from proofcast.errors import InvalidInput, Reason
from proofcast.event import Event
from proofcast.gateway.envelope import parse_envelope

KNOWN_MAX = 100_000
"""Hashes remembered: two weeks of main net."""


@dataclass(slots=True)
class Witness:
    trusted_hash: bytes
    wanted: Wanted
    _known: dict[bytes, str] = field(default_factory=dict)
    """Hash of a block to the word for it."""

    def __post_init__(self) -> None:
        self._known[self.trusted_hash] = TRUSTED

    def verify(self, payload: bytes) -> Event:
        """The event with our own word of trust, or `InvalidInput`."""
        envelope = parse_envelope(payload)
        evidence = parse_evidence(envelope.evidence)
        headers = verify_consecutive(envelope.headers)
        event = parse_structured(envelope.event).event
        block_hash = event.position.block_hash
        place = find_place(headers, block_hash)
        verify_evidence(envelope.evidence, block_hash)
        receipt = prove_receipt(evidence, event, block_hash)
        verify_event(event, receipt, self.wanted)
        return replace(event, trust=self._join(headers, place))

    def _join(self, headers: Sequence[VerifiedHeader], place: int) -> str:
        """The word for the block at the place; what the headers add is known from now on."""
        leading = [header.hash for header in headers[place:]]
        trusted_at = max((at for at, block in enumerate(leading) if self._known.get(block) == TRUSTED), default=None)
        if trusted_at is not None:
            self._remember((header.hash for header in headers[: place + trusted_at + 1]), TRUSTED)
            return TRUSTED
        standing = [headers[0].header.parent_hash, *(header.hash for header in headers[: place + 1])]
        joined = next((at for at, block in enumerate(standing) if block in self._known), None)
        if joined is None:
            raise refuse_headers(headers)
        self._remember((header.hash for header in headers[joined:] if header.hash not in self._known), Trust.LINKED)
        return Trust.LINKED

    def _remember(self, hashes: Iterable[bytes], word: str) -> None:
        for block_hash in hashes:
            self._known[block_hash] = word
        while len(self._known) > KNOWN_MAX:
            oldest = next(block for block in self._known if block != self.trusted_hash)
            del self._known[oldest]


def verify_consecutive(raws: Sequence[bytes]) -> list[VerifiedHeader]:
    verified: list[VerifiedHeader] = []
    parent: BlockId | None = None
    for raw in raws:
        verified.append(verify_header(raw, None, parent))
        parent = verified[-1].link.id
    return verified


def find_place(headers: Sequence[VerifiedHeader], block_hash: bytes) -> int:
    for place, header in enumerate(headers):
        if header.hash == block_hash:
            return place
    message = f"block `0x{block_hash.hex()}` of the event is not among the `{len(headers)}` headers"
    raise InvalidInput(Reason.DISAGREES, message, hint="the gateway is wrong or lies; subscribe to another")


def prove_receipt(evidence: Evidence, event: Event, block_hash: bytes) -> ProvenReceipt:
    at = event.position
    header = verify_path(evidence.headers, block_hash).header
    if (evidence.transaction_index, header.number) != (at.transaction_index, at.block_number):
        message = (
            f"evidence is of transaction `{evidence.transaction_index}` of block `{header.number}`, the event of"
            f" `{at.transaction_index}` of `{at.block_number}`"
        )
        raise InvalidInput(Reason.DISAGREES, message, hint="the gateway is wrong or lies; subscribe to another")
    logs = verify_receipt(evidence, header).logs
    return ProvenReceipt(logs, header.number, header.timestamp, at.log_index - evidence.log_position)


def refuse_headers(headers: Sequence[VerifiedHeader]) -> InvalidInput:
    message = f"blocks `{headers[0].link.id}` to `{headers[-1].link.id}` lead to no block that you trust"
    return InvalidInput(Reason.DISAGREES, message, hint="trust a newer block with `--trust`, if you have one of theirs")

"""Evidence on demand, made of the blocks that the feed keeps: neither Spark nor a node is needed for it."""

import re
from pathlib import Path

from proofcast.chain.evidence import build_evidence, encode_evidence
from proofcast.chain.profile import get_profile
from proofcast.chain.trust import Trust
from proofcast.chain.verify import verify_block
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.feed.io.sqlite import Journal

EVENT_ID = re.compile(r"(\d{1,20})/(\d{12,20})/(\d{6,10})/([0-9a-f]{64})/(apply|undo)(-\d+)?")
"""As `cloudevents.compute_id` writes it."""


class EvidenceMaker:
    def __init__(self, folder: Path) -> None:
        self._journal = Journal(folder)

    def build(self, event_id: str) -> bytes:
        """Evidence that the event's log is in its block; whoever trusts the block's hash can check it."""
        parts = EVENT_ID.fullmatch(event_id)
        if parts is None:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"`{ascii(event_id[:120])[1:-1]}` is no event's id",
                hint="write it as it was delivered",
            )
        chain_id, log_index, block_hash = int(parts[1]), int(parts[3]), bytes.fromhex(parts[4])
        raw = self._journal.find_block(block_hash) if chain_id == self._journal.get_chain_id() else None
        if raw is None:
            raise Unavailable(
                Reason.NOT_YET,
                f"block `0x{block_hash.hex()}` of chain `{chain_id}` is not kept here",
                hint="ask a broker that follows this contract and chain",
            )
        block = verify_block(raw, get_profile(chain_id), block_hash, trust=Trust.LINKED)
        return encode_evidence(build_evidence(block, log_index))

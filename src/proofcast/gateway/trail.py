"""The headers that a verifying reader was sent, kept as bytes, so that the newest can be sent on with an event."""

from collections import OrderedDict
from dataclasses import dataclass, field

from proofcast.chain.verify import verify_header
from proofcast.client.lineage import Lineage, split_headers
from proofcast.gateway.envelope import HEADERS_BEFORE_MAX

KEPT_MAX = 4_096
"""Headers, two megabytes: an event may be far behind the newest block."""


@dataclass(slots=True)
class Trail(Lineage):
    _kept: OrderedDict[bytes, tuple[bytes, bytes]] = field(default_factory=OrderedDict)
    """Hash of a block to its parent's hash and its header."""

    def receive(self, data: bytes) -> None:
        Lineage.receive(self, data)
        for raw in split_headers(data):
            found = verify_header(raw)
            self._kept[found.hash] = (found.header.parent_hash, raw)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)

    def get_before(self, block_hash: bytes) -> list[bytes]:
        """The headers before a block, oldest first, as far as they are kept and one envelope takes."""
        found: list[bytes] = []
        parent_hash, _ = self._kept.get(block_hash, (b"", b""))
        while parent_hash in self._kept and len(found) < HEADERS_BEFORE_MAX:
            parent_hash, raw = self._kept[parent_hash]
            found.append(raw)
        return found[::-1]

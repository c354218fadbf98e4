"""Where a stream stands: the last step it has read."""

from collections.abc import Mapping
from dataclasses import dataclass

from proofcast.chain.segment import BlockId
from proofcast.errors import InvalidRequest, Reason

OffsetFields = dict[str, int | str]
"""What Spark keeps of an offset."""


@dataclass(frozen=True, slots=True, order=True)
class Offset:
    """Ordered by sequence, then number: settled blocks share a sequence, journalled steps have one each."""

    sequence: int
    number: int
    hash: bytes

    @property
    def block(self) -> BlockId:
        return BlockId(self.number, self.hash)

    def encode(self) -> OffsetFields:
        return {"sequence": self.sequence, "number": self.number, "hash": self.hash.hex()}


def parse_offset(fields: Mapping[str, object]) -> Offset:
    sequence, number, block_hash = fields.get("sequence"), fields.get("number"), fields.get("hash")
    if not isinstance(sequence, int) or not isinstance(number, int) or not isinstance(block_hash, str):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`{dict(fields)}` is no offset of the data source `evm`",
            hint="an offset has a sequence, a number and a hash; remove the stream's checkpoint to begin anew",
        )
    return Offset(sequence, number, bytes.fromhex(block_hash))

"""What a server hangs out for everybody: its last signed checkpoints, and what witnesses said to them.

Cosignatures go through the log like everything else, so that every shard has them and a restart forgets none that a
device may still ask for.
"""

from dataclasses import dataclass, field

from proofcast.errors import InvalidRequest, Reason
from proofcast.groups.witness import is_cosigned, parse_cosignatures, parse_signed, refuse

EPOCHS_MAX = 1 << 17
"""Kept: 24 MB of checkpoints; a day and a half of an idle server, three quarters of an hour of a busy one."""
CHECKPOINTS_MAX = 4_096
"""In one answer: 750 kB."""


@dataclass(slots=True)
class Notice:
    witnesses: frozenset[bytes] = frozenset()
    """Those that the operator named; nobody else fills our log."""
    signed: dict[int, bytes] = field(default_factory=dict)
    """Checkpoints with their signatures by epoch, oldest first, without gaps."""
    cosignatures: dict[int, dict[bytes, bytes]] = field(default_factory=dict)
    """By epoch and witness."""

    def add(self, epoch: int, signed: bytes) -> None:
        self.signed[epoch] = signed
        self.signed.pop(epoch - EPOCHS_MAX, None)
        self.cosignatures.pop(epoch - EPOCHS_MAX, None)

    def read(self, after: int) -> bytes:
        """The next checkpoints, as many as fit an answer."""
        oldest = next(iter(self.signed), 0)
        if after + 1 < oldest:
            message = f"the checkpoints before epoch `{oldest}` are gone"
            hint = "a witness that was away for so long begins anew, in another folder"
            raise InvalidRequest(Reason.STALE_SEQUENCE, message, hint=hint, have=after + 1, need=oldest)
        epochs = range(after + 1, after + 1 + CHECKPOINTS_MAX)
        return b"".join([self.signed[epoch] for epoch in epochs if epoch in self.signed])

    def verify(self, witness: bytes, body: bytes) -> None:
        """Raise unless a witness that we know has signed checkpoints of ours."""
        if witness not in self.witnesses:
            message = f"the server was not told of a witness `{witness.hex()}`"
            raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="`proofcast group serve --witness KEY` names it")
        for epoch, signature in parse_cosignatures(body):
            if epoch not in self.signed:
                raise refuse(f"the checkpoint of epoch `{epoch}` is not there")
            ((checkpoint, _),) = parse_signed(self.signed[epoch])
            if not is_cosigned(checkpoint, witness, signature):
                raise refuse(f"the cosignature of epoch `{epoch}` does not hold")

    def apply(self, witness: bytes, body: bytes) -> None:
        """Take what was verified when it was accepted."""
        for epoch, signature in parse_cosignatures(body):
            self.cosignatures.setdefault(epoch, {})[witness] = signature

    def get_cosignatures(self, epoch: int) -> bytes:
        """witness 32 | signature 64, of each."""
        return b"".join(witness + signature for witness, signature in self.cosignatures.get(epoch, {}).items())

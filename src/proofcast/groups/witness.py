"""A third party that signs one checkpoint per epoch, each continuing the last: of two forks it signs one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct

from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from proofcast.errors import InvalidInput, Misbehaviour, Reason, Unavailable
from proofcast.groups.attested import PROVED
from proofcast.groups.evidence import encode_proof, make_fork
from proofcast.groups.proof import CHECKPOINT, Checkpoint, Refused, verify_proof, verify_signature
from proofcast.groups.shard_close import SIGNED_BYTES

TAG = b"pcg1/wit"
KEY_BYTES = 32
COSIGNATURE = Struct(">Q64s")

Signed = tuple[Checkpoint, bytes]
"""With the server's signature."""


@dataclass(slots=True)
class Witness:
    """`last` must be durable before a signature is given away."""

    key: SigningKey
    server_key: bytes
    last: Signed | None = None

    def cosign(self, signed: Signed) -> bytes:
        """A signature over the next checkpoint, or the last one again.

        Raises `Misbehaviour` with the proof where the server shows two chains, `InvalidInput` where something between
        what was seen and this is missing.
        """
        self.verify(signed)
        self.last = signed
        return self.key.sign(TAG + signed[0].encode()).signature

    def verify(self, signed: Signed) -> None:
        checkpoint, signature = signed
        if checkpoint.server_key != self.server_key:
            raise refuse(f"the checkpoint names the key `{checkpoint.server_key.hex()}`, not that of our server")
        try:
            verify_signature(checkpoint, signature)
        except Refused as error:
            raise refuse(str(error)) from None
        if self.last is None or checkpoint == self.last[0]:
            return
        if checkpoint.epoch - self.last[0].epoch not in (0, 1):
            raise refuse(f"epoch `{checkpoint.epoch}` does not follow epoch `{self.last[0].epoch}`")
        if checkpoint.epoch == self.last[0].epoch or checkpoint.previous != self.last[0].compute_digest():
            proof = encode_proof(make_fork(self.last, signed))
            sentence = verify_proof(proof, self.server_key).sentence
            raise Misbehaviour(Reason.DISAGREES, sentence, hint=PROVED, evidence=proof)


@dataclass(frozen=True, slots=True)
class Quorum:
    """What a device demands of every epoch before it believes it."""

    witnesses: tuple[bytes, ...] = ()
    """Keys of those it trusts."""
    count: int = 0
    """How many of them must have signed; 0 demands nothing."""

    def verify(self, checkpoint: Checkpoint, cosignatures: Mapping[bytes, bytes]) -> None:
        """Raise unless enough of the witnesses, given as key to signature, have signed this checkpoint."""
        known = ((key, cosignatures[key]) for key in self.witnesses if key in cosignatures)
        found = sum(is_cosigned(checkpoint, key, signature) for key, signature in known)
        if found < self.count:
            message = f"`{found}` witnesses signed epoch `{checkpoint.epoch}` where `{self.count}` are wanted"
            hint = "try again when they have; a server that shows you an order of your own never gets their signatures"
            raise Unavailable(Reason.NOT_YET, message, hint=hint)

    def encode(self) -> bytes:
        return bytes([self.count]) + b"".join(self.witnesses)


def parse_quorum(data: bytes) -> Quorum:
    """What we stored ourselves."""
    return Quorum(tuple(data[at : at + KEY_BYTES] for at in range(1, len(data), KEY_BYTES)), data[0] if data else 0)


def encode_cosignatures(cosignatures: Iterable[tuple[int, bytes]]) -> bytes:
    """Of one witness: any number of (epoch u64 | signature 64)."""
    return b"".join(COSIGNATURE.pack(*one) for one in cosignatures)


def parse_cosignatures(data: bytes) -> list[tuple[int, bytes]]:
    if not data or len(data) % COSIGNATURE.size:
        raise refuse(f"`{len(data)}` bytes are no list of cosignatures")
    return list(COSIGNATURE.iter_unpack(data))


def parse_signed(data: bytes) -> list[Signed]:
    """Checkpoints as a server hands them out."""
    if len(data) % SIGNED_BYTES:
        raise refuse(f"`{len(data)}` bytes are no list of signed checkpoints")
    parts = [data[at : at + SIGNED_BYTES] for at in range(0, len(data), SIGNED_BYTES)]
    return [(Checkpoint(*CHECKPOINT.unpack(part[: CHECKPOINT.size])), part[CHECKPOINT.size :]) for part in parts]


def is_cosigned(checkpoint: Checkpoint, key: bytes, signature: bytes) -> bool:
    try:
        VerifyKey(key).verify(TAG + checkpoint.encode(), signature)
    except (CryptoError, ValueError):
        return False
    return True


def refuse(message: str) -> InvalidInput:
    return InvalidInput(Reason.DISAGREES, message, hint="ask the server for every checkpoint in between")

"""A third party that signs one checkpoint per epoch, each continuing the last: of two forks it signs one."""

from dataclasses import dataclass

from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from proofcast.errors import InvalidInput, Misbehaviour, Reason
from proofcast.groups.attested import PROVED
from proofcast.groups.evidence import encode_proof, make_fork
from proofcast.groups.proof import Checkpoint, Refused, verify_proof, verify_signature

TAG = b"pcg1/wit"

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


def verify_cosignatures(checkpoint: Checkpoint, cosignatures: dict[bytes, bytes], quorum: int) -> None:
    """Raise unless `quorum` of the witnesses, given as key to signature, have signed this checkpoint."""
    count = sum(is_cosigned(checkpoint, key, signature) for key, signature in cosignatures.items())
    if count < quorum:
        raise refuse(f"`{count}` witnesses signed epoch `{checkpoint.epoch}` where `{quorum}` are wanted")


def is_cosigned(checkpoint: Checkpoint, key: bytes, signature: bytes) -> bool:
    try:
        VerifyKey(key).verify(TAG + checkpoint.encode(), signature)
    except (CryptoError, ValueError):
        return False
    return True


def refuse(message: str) -> InvalidInput:
    return InvalidInput(Reason.DISAGREES, message, hint="ask the server for every checkpoint in between")

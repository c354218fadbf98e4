"""What the core needs of pairwise encryption; `io/sessions.py` provides it with the double ratchet."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from proofcast.groups.identity import KeyBundle
from proofcast.groups.series import Form


class Opened(NamedTuple):
    payload: bytes
    is_new: bool
    """The ciphertext opened a session that was not there before; an ack is due."""


class Sessions(Protocol):
    """One device's sessions. Every change is among what `take_changes` returns, to be stored before anything leaves."""

    def has(self, peer: bytes) -> bool:
        """Whether something can be encrypted for `peer`."""
        ...

    def open_with(self, bundle: KeyBundle) -> None:
        """Begin a session; later ciphertexts for that peer use it."""
        ...

    def encrypt(self, peer: bytes, payload: bytes) -> tuple[Form, bytes]: ...

    def decrypt(self, peer: bytes, form: Form, ciphertext: bytes) -> Opened:
        """Raises `InvalidInput` where it cannot be opened; nothing changes then."""
        ...

    def forget_all(self) -> None:
        """New keys, no sessions: after a restored backup."""
        ...

    def make_bundles(self, count: int) -> list[KeyBundle]:
        """Fresh one-time keys, signed."""
        ...

    def make_fallback(self) -> KeyBundle: ...

    def take_changes(self) -> Mapping[str, bytes | None]: ...

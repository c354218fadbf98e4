"""What a device's core tells its driver to do, in order; and what the driver tells the core.

`Store` comes before the outputs that depend on it: the driver makes it durable, together with the `Deliver`s that
follow it, before anything leaves the device.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from proofcast.groups.identity import KeyBundle


class Culprit(Enum):
    SERVER = "server"
    PEER = "peer"
    SILENT_PEER = "silent peer"
    """Will not answer, or has not kept what it should have."""


@dataclass(frozen=True, slots=True)
class Store:
    changes: Mapping[str, bytes | None]
    """Name to value; None forgets it."""


@dataclass(frozen=True, slots=True)
class SendSeries:
    counter: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ClaimKeys:
    """Ask the server for one key bundle of each device; answer with `Bundles`."""

    devices: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class NoKeys:
    """A series was dropped because the server has no keys of these devices."""

    devices: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PublishKeys:
    bundles: tuple[KeyBundle, ...]


@dataclass(frozen=True, slots=True)
class DeleteInbox:
    """Everything before `sequence` is stored here."""

    sequence: int


@dataclass(frozen=True, slots=True)
class DemandLeaf:
    """Ask the server to attest the next epoch to us, even if nothing happened."""


@dataclass(frozen=True, slots=True)
class Deliver:
    sequence: int
    sender: bytes
    recipients: tuple[bytes, ...]
    operation: bytes


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The server has promised a series its place; its operations come back in `Deliver`."""

    counter: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something is wrong at `sequence`; `peer` is asked, and nothing is delivered meanwhile."""

    peer: bytes
    sequence: int
    reason: str


@dataclass(frozen=True, slots=True)
class Accuse:
    """The verdict. The application now decides: halt, roll back, or load a snapshot."""

    culprit: Culprit
    device: bytes | None
    """The peer; None where it is the server."""
    sequence: int
    """Where it happened; 0 where it concerns no single message."""
    sentence: str
    proof: bytes | None
    """Convinces a stranger; the server only, and only where the server signed what contradicts itself."""
    validated: int
    """Sequence up to which the history was confirmed: where to roll back to."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The server knows of later series than we do: this is a restored backup, and a new generation begins."""

    counter: int


@dataclass(frozen=True, slots=True)
class Lost:
    """A message of the time that a restored backup does not cover."""

    sequence: int
    sender: bytes


@dataclass(frozen=True, slots=True)
class RolledBack:
    """Undo what was delivered at and after `sequence`."""

    sequence: int


@dataclass(frozen=True, slots=True)
class SnapshotWanted:
    """Take the state from a peer you trust; deliveries go on after `sequence`."""

    sequence: int


Output = (
    Store
    | SendSeries
    | ClaimKeys
    | NoKeys
    | PublishKeys
    | DeleteInbox
    | DemandLeaf
    | Deliver
    | Acknowledged
    | Suspect
    | Accuse
    | Restored
    | Lost
    | RolledBack
    | SnapshotWanted
)


# --- what the driver says, besides packets


@dataclass(frozen=True, slots=True)
class Bundles:
    """The server's answer to `ClaimKeys`; devices without keys are left out."""

    bundles: tuple[KeyBundle, ...]


@dataclass(frozen=True, slots=True)
class KeysLeft:
    """One-time keys of ours that the server still has."""

    count: int


@dataclass(frozen=True, slots=True)
class ServerCounter:
    """What the server knows of us; the first thing to say after connecting."""

    counter: int
    """Of the last series that it accepted from us, 0 where there is none."""
    deleted: int = 0
    """Sequence before which we have had our inbox deleted."""

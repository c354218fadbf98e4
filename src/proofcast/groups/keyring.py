"""Whose keys a device has, and who has its own.

A series is sealed when there is a session with every recipient; keys of those without one are asked for, one series at
a time. Our own keys are published before the server runs out of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from proofcast.errors import InvalidInput
from proofcast.groups import outputs
from proofcast.groups.effects import Effects
from proofcast.groups.identity import KeyBundle
from proofcast.groups.outbox import Draft, Outbox
from proofcast.groups.outputs import Accuse, Culprit
from proofcast.groups.sealing import Sort
from proofcast.groups.session import Sessions


@dataclass(slots=True)
class Keyring:
    sessions: Sessions
    outbox: Outbox
    effects: Effects
    fallback_at: float = 0.0
    """When the fallback key was last replaced."""
    claimed: tuple[bytes, ...] = ()
    """Devices whose keys the server was asked for."""
    unreachable: set[bytes] = field(default_factory=set)
    """Devices of which it had none, until we ask again."""

    def flush(self) -> None:
        """Seal and send what has its keys; ask for those of the first that has not."""
        for _ in range(len(self.outbox.drafts)):
            missing = self.outbox.find_missing()
            if self.unreachable.intersection(missing):
                self.give_up(missing)
            elif missing:
                self.claim(missing)
                return
            else:
                outgoing, changes = self.outbox.seal_next()
                self.effects.changes |= changes
                self.effects.out.append(outputs.SendSeries(outgoing.series.counter, outgoing.series.encode()))

    def claim(self, devices: tuple[bytes, ...]) -> None:
        if devices != self.claimed:
            self.claimed = devices
            self.effects.out.append(outputs.ClaimKeys(devices))

    def give_up(self, missing: tuple[bytes, ...]) -> None:
        """The application hears that an operation cannot be sent; what we ask and answer is tried again later."""
        drafts = self.outbox.drop_next()
        if all(draft.sort is Sort.OPERATION for draft in drafts):
            self.effects.out.append(outputs.NoKeys(tuple(one for one in missing if one in self.unreachable)))
        else:
            self.outbox.add(drafts)

    def receive_bundles(self, message: outputs.Bundles) -> None:
        wanted, self.claimed = set(self.claimed), ()
        opened = {one.device for one in message.bundles if one.device in wanted and self.open_session(one)}
        self.unreachable |= wanted - opened

    def open_session(self, bundle: KeyBundle) -> bool:
        """Whether the keys are the device's own; if not, somebody stands in the middle."""
        try:
            bundle.verify(bundle.device)
            self.sessions.open_with(bundle)
        except InvalidInput as error:
            validated = self.outbox.histories.compute_validated()
            self.effects.out.append(Accuse(Culprit.SERVER, None, 0, str(error), None, validated))
            return False
        self.outbox.broken.discard(bundle.device)
        return True

    def acknowledge(self, peers: Sequence[bytes]) -> None:
        """Whoever began a session hears from us, which ends the longer form of its messages."""
        others = [peer for peer in dict.fromkeys(peers) if peer != self.outbox.device]
        if others:
            self.outbox.add(tuple(Draft(b"", (peer,), Sort.ACK) for peer in others))

    def publish(self, count: int, now: float, *, with_fallback: bool) -> None:
        bundles = self.sessions.make_bundles(count) if count else []
        if with_fallback:
            bundles.append(self.sessions.make_fallback())
            self.fallback_at = now
        self.effects.out.append(outputs.PublishKeys(tuple(bundles)))

    def ask_again(self) -> None:
        """Whoever had no keys may have some by now."""
        self.unreachable = set()

"""What the parts of a device's core want done, collected until the driver gets it."""

from dataclasses import dataclass, field

from proofcast.groups.attested import Changes
from proofcast.groups.outputs import Output, Store


@dataclass(slots=True)
class Effects:
    changes: Changes = field(default_factory=dict)
    out: list[Output] = field(default_factory=list)

    def take(self) -> list[Output]:
        """All of it, what is to be stored first."""
        changes, out = self.changes, self.out
        self.changes, self.out = {}, []
        return [Store(changes), *out] if changes else out

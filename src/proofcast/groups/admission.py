"""How much one device may ask for: a bucket that fills with time and empties with use."""

from dataclasses import dataclass, field

from proofcast.errors import Reason, Unavailable

DEVICES_MAX = 100_000
"""Buckets kept; full ones, which are like new, are dropped beyond it."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `burst` at once and `per_s` over time."""

    per_s: float
    burst: float


@dataclass(slots=True)
class Limiter:
    """One kind of use, all devices."""

    rate: Rate
    what: str
    """For the refusal, e.g. `bytes`."""
    levels: dict[bytes, tuple[float, float]] = field(default_factory=dict)
    """What is left, and when that was so."""

    def take(self, device: bytes, amount: float, now: float) -> None:
        """Use some, or raise `Unavailable` and say when to come back."""
        left, then = self.levels.get(device, (self.rate.burst, now))
        left = min(self.rate.burst, left + (now - then) * self.rate.per_s)
        if left < min(amount, self.rate.burst):
            wait_s = (min(amount, self.rate.burst) - left) / self.rate.per_s
            message = f"the device asks for `{amount:.0f}` {self.what} where `{left:.0f}` are left"
            raise Unavailable(Reason.NOT_YET, message, hint=f"wait `{wait_s:.1f}` seconds")
        self.levels[device] = (left - amount, now)
        if len(self.levels) > DEVICES_MAX:
            self.forget(now)

    def forget(self, now: float) -> None:
        full = self.rate.burst
        self.levels = {
            device: (left, then)
            for device, (left, then) in self.levels.items()
            if left + (now - then) * self.rate.per_s < full
        }

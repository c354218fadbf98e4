"""What lies between simulated peers: distance, bandwidth, loss."""

import random
from collections import defaultdict
from dataclasses import dataclass, field

RESET_ROUND_TRIPS = 1.0
"""A message to a crashed process is answered with a reset, which takes as long as an answer."""
SILENCE_S = 5.0
"""How long a transport waits on a dead link before it reports it."""


@dataclass(frozen=True, slots=True)
class Link:
    """Properties of every link; bandwidth and queue are those of one direction between two peers."""

    delay_s: float = 0.010
    far_delay_s: float = 0.010
    """Between peers of different regions."""
    jitter_s: float = 0.0
    bits_per_s: float | None = None
    """None: a message takes no time to write."""
    loss: float = 0.0
    """Chance that a message vanishes without a word."""


@dataclass(slots=True)
class Wires:
    """The state of all links: until when each is busy, and when the last message on it arrives."""

    link: Link
    dice: random.Random
    _free_at: defaultdict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))
    _last_arrival: defaultdict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))

    def compute_arrival(self, now: float, source: int, target: int, *, is_far: bool, size: int) -> float:
        """When a message of so many bytes arrives; messages of one link never overtake each other."""
        link = self.link
        delay = link.far_delay_s if is_far else link.delay_s
        if link.bits_per_s is None and not link.jitter_s:
            return now + delay
        ends = (source, target)
        if link.bits_per_s is not None:
            now = max(now, self._free_at[ends]) + size * 8 / link.bits_per_s
            self._free_at[ends] = now
        if link.jitter_s:
            delay += self.dice.random() * link.jitter_s
        arrival = max(now + delay, self._last_arrival[ends])
        self._last_arrival[ends] = arrival
        return arrival

    def is_lost(self) -> bool:
        return self.link.loss > 0 and self.dice.random() < self.link.loss

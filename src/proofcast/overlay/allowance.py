"""How much a peer may make us do: a bucket of tokens for each sender, one token for each message."""

from collections import OrderedDict

MESSAGES_PER_S = 5_000
"""Several times what py-libp2p carries between two hosts."""
BURST_MESSAGES = 20_000
"""Copies of the largest table and a log that is handed over, at once."""
SENDERS_MAX = 10_000


class Allowance:
    def __init__(self, per_s: float = MESSAGES_PER_S, burst: float = BURST_MESSAGES) -> None:
        self._per_s = per_s
        self._burst = burst
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        """Sender to (tokens left, when that was)."""

    def take(self, sender: bytes, now: float) -> bool:
        tokens, then = self._buckets.get(sender, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._per_s)
        if tokens < 1:
            return False
        self._buckets[sender] = tokens - 1, now
        if len(self._buckets) > SENDERS_MAX:
            self._buckets.popitem(last=False)
        return True

    def get_left(self, sender: bytes, now: float) -> float:
        tokens, then = self._buckets.get(sender, (self._burst, now))
        return min(self._burst, tokens + (now - then) * self._per_s)

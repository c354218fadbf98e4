"""Which broker to ask next, and after which pause: at once while there is one left, then ever later."""

from collections.abc import Sequence
from dataclasses import dataclass

PAUSE_S, PAUSE_S_MAX = 0.2, 15.0
ROUNDS_MAX = 3
"""After which brokers that all say they cannot serve something are believed."""


@dataclass(slots=True)
class Rounds:
    urls: Sequence[str]
    _tried: int = 0
    """Since something came from any of them."""
    _next: int = 0

    @property
    def is_hopeless(self) -> bool:
        """Has every broker been asked often enough since one of them was of use?"""
        return self._tried >= ROUNDS_MAX * len(self.urls)

    def choose(self, chance: float) -> tuple[str, float]:
        """The next broker, and seconds to wait first; `chance` is drawn from 0 to 1, so that readers do not march."""
        url = self.urls[self._next % len(self.urls)]
        rounds = self._tried // len(self.urls)
        self._tried, self._next = self._tried + 1, self._next + 1
        return url, min(PAUSE_S_MAX, PAUSE_S * 2.0 ** (rounds - 1)) * (0.5 + chance / 2) if rounds else 0.0

    def succeed(self) -> None:
        """The broker chosen last was of use: it is the first to be asked again, without a pause."""
        if self._tried:
            self._tried = 0
            self._next -= 1

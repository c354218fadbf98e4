"""What the demonstration tells: every line is something that was checked in this very run."""

import time
from dataclasses import dataclass, field

import click

from proofcast.errors import InvalidInput, Reason


@dataclass(frozen=True, slots=True)
class Line:
    at_s: float
    said: str


@dataclass(slots=True)
class Story:
    is_quiet: bool = False
    """Nothing is printed while it is told; the lines are all there at its end."""
    lines: list[Line] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def begin(self, act: str) -> None:
        self._print(f"\n{act}")

    def check(self, said: str, found: object, expected: object) -> None:
        """Tell it where it is so; end everything where it is not."""
        if found != expected:
            raise InvalidInput(
                Reason.DISAGREES,
                f"not so: {said} (found `{found}`, expected `{expected}`)",
                hint="this is a defect: please report it with the output above",
            )
        line = Line(round(time.monotonic() - self.began, 1), said)
        self.lines.append(line)
        self._print(f"{line.at_s:6.1f} s  ok  {said}")

    def _print(self, text: str) -> None:
        if not self.is_quiet:
            click.echo(text)

"""What an operator counts: by which door, with which outcome, and how deep the chain was rewritten."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from proofcast.chain.steps import ChainStep
from proofcast.event import Step


class Transport(StrEnum):
    SSE = "sse"
    WEBSOCKET = "websocket"
    PULL = "pull"
    WEBHOOK = "webhook"
    KAFKA = "kafka"


class Outcome(StrEnum):
    SENT = "sent"
    """Written to the subscriber's connection; whether it arrived is not known."""
    ACKNOWLEDGED = "acknowledged"
    """The subscriber says that it has it."""
    FAILED = "failed"
    """An attempt that will be made again."""
    DEAD = "dead"
    """Given up: it waits among the dead letters."""


@dataclass(frozen=True, slots=True)
class Reorg:
    """Blocks that were undone one after the other."""

    sequence: int
    """Of the first step."""
    first: int
    last: int


def find_reorgs(undone: Iterable[tuple[int, int]]) -> list[Reorg]:
    """Out of (sequence, number) of undone blocks, oldest first; an unbroken run is one reorg."""
    found: list[Reorg] = []
    end = -1
    for sequence, number in undone:
        if found and sequence == end + 1:
            found[-1] = replace(found[-1], first=number)
        else:
            found.append(Reorg(sequence, number, number))
        end = sequence
    return found


class ReorgMeter:
    """Tells reorgs apart in a list of steps: one reorg is one unbroken run of undone blocks, however it is read."""

    def __init__(self) -> None:
        self._depth = 0
        """Of the run that the last steps read belong to."""

    def read(self, steps: Iterable[ChainStep]) -> list[int]:
        """Depths of the reorgs that ended within these steps."""
        ended: list[int] = []
        for step in steps:
            if step.step is Step.UNDO:
                self._depth += 1
            elif self._depth:
                ended.append(self._depth)
                self._depth = 0
        return ended

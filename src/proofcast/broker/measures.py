"""What an operator counts: by which door, with which outcome, and how deep the chain was rewritten."""

from collections.abc import Iterable
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

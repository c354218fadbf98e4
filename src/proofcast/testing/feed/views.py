"""What a subscriber does with what it gets."""

from proofcast.event import Event, Finality, Step
from proofcast.testing.feed.story import LogName


def perform(held: list[LogName], event: Event) -> None:
    name = (event.position.block_hash, event.position.log_index)
    if event.step is Step.UNDO:
        assert event.finality is not Finality.FINALIZED, "what is final was undone"
        assert held.pop() == name, "undone is not what was applied last"
    else:
        assert name not in held, "applied twice"
        held.append(name)

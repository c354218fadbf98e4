"""From any view to the present: compared with what the chain plainly holds."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from proofcast.chain.segment import BlockId
from proofcast.chain.steps import BlockLink
from proofcast.errors import Unavailable
from proofcast.event import Finality, Step
from proofcast.feed.io.history import History, UnknownBlock
from proofcast.feed.view import WHOLE_BLOCK, Move, View
from proofcast.testing.feed.story import START, LogName, Story


def perform(held: list[LogName], moves: Sequence[Move]) -> None:
    """What a subscriber does."""
    for move in moves:
        name = (move.row.position.block_hash, move.row.position.log_index)
        if move.step is Step.UNDO:
            assert held.pop() == name, "undone is what was applied last"
        else:
            held.append(name)


@pytest.mark.parametrize("level", Finality)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_every_view_leads_to_the_present(seed: int, level: Finality, tmp_path: Path) -> None:
    story, history = Story(tmp_path, seed), History(tmp_path)
    held: list[LogName] = []
    view = history.get_oldest()
    for _ in range(40):
        story.grow()
        story.settle()
        way = history.find_way(view, level, limit=story.random.randrange(1, 6))
        perform(held, way.moves)
        view = way.view
    while not (way := history.find_way(view, level, limit=3)).is_complete:
        perform(held, way.moves)
        view = way.view
    perform(held, way.moves)
    assert held == story.list_logs(level), seed


@pytest.mark.parametrize("seed", range(2))
def test_finalized_subscription_waits(seed: int, tmp_path: Path) -> None:
    """Nothing that is delivered at `finalized` is ever undone."""
    story, history = Story(tmp_path, seed), History(tmp_path)
    view = history.get_oldest()
    for _ in range(40):
        story.grow()
        story.settle()
        way = history.find_way(view, Finality.FINALIZED)
        assert all(move.step is Step.APPLY for move in way.moves)
        view = way.view


def test_view_that_is_not_final_is_refused_for_final_blocks(tmp_path: Path) -> None:
    story, history = Story(tmp_path, 1), History(tmp_path)
    story.grow()
    with pytest.raises(Unavailable, match="is not final"):
        history.find_way(history.get_newest(Finality.LATEST), Finality.FINALIZED)


def test_block_never_seen_is_named(tmp_path: Path) -> None:
    story, history = Story(tmp_path, 1), History(tmp_path)
    story.grow()
    with pytest.raises(UnknownBlock, match="never seen here"):
        history.find_way(View(BlockId(101, b"\7" * 32), WHOLE_BLOCK), Finality.LATEST)


def test_block_taken_back_has_another_turn(tmp_path: Path) -> None:
    story, history = Story(tmp_path, 1), History(tmp_path)
    first, second = (story.make_block(START, [story.make_log()]) for _ in range(2))
    taller = story.make_block(second.id, [])
    view, turns = history.get_oldest(), []
    branches: list[list[BlockLink]] = [[first], [second, taller], [first], [second, taller]]
    for branch in branches:
        story.adopt(branch)
        way = history.find_way(view, Finality.LATEST)
        turns += [(move.step.value, move.view.block == first.id, move.turn) for move in way.moves]
        view = way.view
    assert turns == [
        ("apply", True, 1),
        ("undo", True, 1),
        ("apply", False, 1),
        ("undo", False, 1),
        ("apply", True, 2),
        ("undo", True, 2),
        ("apply", False, 2),
    ]


def test_logs_not_yet_in_the_outbox_are_waited_for(tmp_path: Path) -> None:
    """Whoever reads between the journal and the outbox must not pass a block whose logs are still to come."""
    story, history = Story(tmp_path, 1), History(tmp_path)
    steps = story.chain.adopt([story.make_block(START, [story.make_log()])])
    story.journal(steps)
    assert history.find_way(history.get_oldest(), Finality.LATEST).view.block == START
    story.deliver(steps)
    assert len(history.find_way(history.get_oldest(), Finality.LATEST).moves) == 1

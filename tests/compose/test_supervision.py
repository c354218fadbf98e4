"""When processes start and end, without starting one."""

import re

import pytest

from proofcast.compose.plan import Component
from proofcast.compose.supervision import (
    END_S_MAX,
    RESTARTS_MAX,
    AllReady,
    Ask,
    Finish,
    Kill,
    Output,
    Say,
    Start,
    State,
    Supervision,
)

PLAN = tuple(Component(name, (name,), re.compile("ready at .+"), 10.0) for name in ("chain", "pipeline", "broker"))


def get_acts(outputs: list[Output]) -> list[Output]:
    """What is done, without what is said."""
    return [output for output in outputs if not isinstance(output, Say)]


def bring_up() -> Supervision:
    supervision = Supervision(PLAN)
    supervision.begin(0)
    for component in PLAN:
        supervision.hear(component.name, "ready at 1", 0)
    return supervision


def end_all(supervision: Supervision, now: float = 0) -> Finish:
    """Every process ends when it is asked to."""
    outputs = get_acts(supervision.end(now))
    while not isinstance(outputs[0], Finish):
        (asked,) = outputs
        assert isinstance(asked, Ask)
        outputs = get_acts(supervision.bury(asked.name, 130, now))
    return outputs[0]


# --- failures


def test_one_that_never_was_ready_is_not_started_again() -> None:
    supervision = Supervision(PLAN)
    supervision.begin(0)
    supervision.hear("chain", "ready at 1", 0)
    supervision.hear("pipeline", "error: no Java here", 1)
    supervision.hear("pipeline", "hint: install it", 1)
    assert get_acts(supervision.bury("pipeline", 75, 1)) == [Ask("chain")]
    (finish,) = get_acts(supervision.bury("chain", 0, 1))
    assert isinstance(finish, Finish)
    assert finish.failure
    assert finish.failure.message == "the pipeline ended before it was ready, with code `75`: no Java here"
    assert finish.failure.hint == "install it"


def test_one_that_is_never_ready_ends_everything() -> None:
    supervision = Supervision(PLAN)
    supervision.begin(0)
    assert supervision.deadline() == 10
    assert supervision.tick(9) == []
    assert get_acts(supervision.tick(10)) == [Ask("chain")]
    (finish,) = get_acts(supervision.bury("chain", 0, 11))
    assert isinstance(finish, Finish)
    assert finish.failure
    assert "not ready after `10` seconds" in finish.failure.message


def test_one_that_keeps_dying_ends_everything() -> None:
    supervision = bring_up()
    for death in range(1, RESTARTS_MAX):
        assert get_acts(supervision.bury("broker", 1, death)) == [Start(PLAN[2])]
        supervision.hear("broker", "ready at 1", death)
    assert get_acts(supervision.bury("broker", 1, RESTARTS_MAX)) == [Ask("pipeline")]
    assert supervision.get_states()["broker"] is State.ENDED


def test_one_that_dies_now_and_then_is_always_started_again() -> None:
    supervision = bring_up()
    for hour in range(1, 10):
        assert get_acts(supervision.bury("pipeline", -9, hour * 3600)) == [Start(PLAN[1])]
        assert get_acts(supervision.hear("pipeline", "ready at 2", hour * 3600)) == []


def test_one_that_does_not_end_is_killed() -> None:
    supervision = bring_up()
    assert get_acts(supervision.end(100)) == [Ask("broker")]
    assert supervision.tick(100 + END_S_MAX - 1) == []
    assert get_acts(supervision.tick(100 + END_S_MAX)) == [Kill("broker")]
    assert get_acts(supervision.bury("broker", -9, 130)) == [Ask("pipeline")]


def test_one_that_dies_while_another_is_ending_is_not_started_again() -> None:
    supervision = bring_up()
    supervision.end(0)
    assert get_acts(supervision.bury("pipeline", 1, 1)) == []
    assert get_acts(supervision.bury("broker", 0, 2)) == [Ask("chain")]


# --- the usual way


def test_each_starts_when_the_one_before_is_ready() -> None:
    supervision = Supervision(PLAN)
    assert get_acts(supervision.begin(0)) == [Start(PLAN[0])]
    assert supervision.hear("chain", "nearly there", 1) == []
    assert get_acts(supervision.hear("chain", "now ready at 1", 2)) == [Start(PLAN[1])]
    assert get_acts(supervision.hear("pipeline", "ready at 2", 3)) == [Start(PLAN[2])]
    assert get_acts(supervision.hear("broker", "ready at 3", 4)) == [AllReady()]
    assert supervision.deadline() is None


@pytest.mark.parametrize("ready", range(3))
def test_ending_goes_the_opposite_way_whatever_is_ready(ready: int) -> None:
    supervision = Supervision(PLAN)
    supervision.begin(0)
    for component in PLAN[:ready]:
        supervision.hear(component.name, "ready at 1", 0)
    assert end_all(supervision) == Finish(None)
    assert supervision.end(9) == []

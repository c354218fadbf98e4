"""Scenario files: what is wrong with one is said, and those beside this test come out as they say."""

from pathlib import Path

import pytest

from proofcast.errors import InvalidRequest
from proofcast.overlay.settings import Settings
from proofcast.testing.overlay.picture import draw_tree
from proofcast.testing.overlay.scenario import find_differences
from proofcast.testing.overlay.simulated import SimulatedStage

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("dance", "`dance` is no command"),
        ("peers many", "`many` is no number of peers"),
        ("peers 3 speed=9", "`speed` is no setting"),
        ("peers 3 reliable=perhaps", "`perhaps` is no value"),
        ("subscribe 5 surf T", "goes beyond the `2` peers"),
        ("subscribe x surf T", "`x` names no peers"),
        ("subscribe 1 surf Q", "`Q` is no letter"),
        ("wait long", "`long` is no time"),
    ],
)
def test_wrong_line_is_named(line: str, fault: str) -> None:
    with pytest.raises(InvalidRequest, match=fault):
        find_differences(f"peers 2\n{line}\n", SimulatedStage(1), Settings())


def test_difference_is_found() -> None:
    (difference,) = find_differences("peers 2\ncheck\n----\nexpected 5\n", SimulatedStage(1), Settings())
    assert difference.printed == ("expected 0, delivered 0, missing 0, twice 0, unexpected 0",)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("seed", range(2))
def test_scenario_comes_out_as_it_says(file: Path, seed: int) -> None:
    assert find_differences(file.read_text(), SimulatedStage(seed), Settings()) == [], f"seed {seed}"


def test_picture_shows_every_subscriber() -> None:
    stage = SimulatedStage(1)
    find_differences("peers 30\nsubscribe 0-29 surf T\nwait 2\n", stage, Settings())
    picture = draw_tree(stage, "surf")
    assert picture.count("<circle") == 30
    assert picture.count("<line") == 29

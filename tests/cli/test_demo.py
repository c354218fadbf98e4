"""`proofcast demo`: the whole story, on real processes."""

import json
import subprocess
import sys

import pytest

from proofcast.cli.demo.story import Story
from proofcast.errors import InvalidInput


def test_what_is_not_so_ends_the_story() -> None:
    story = Story(is_quiet=True)
    story.check("one is one", 1, 1)
    with pytest.raises(InvalidInput, match="not so: two is one"):
        story.check("two is one", 2, 1)
    assert [line.said for line in story.lines] == ["one is one"]


@pytest.mark.slow
@pytest.mark.needs("anvil", "java")
def test_whole_story_holds() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "proofcast.cli", "demo", "--json"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    said = "\n".join(line["said"] for line in json.loads(told.stdout))
    contracts, services = ("pays for LH454", "callback failed"), ("SSE", "webhook", "SDK")
    for words in (*contracts, *services, "undone in", "leaves out a log", "prove event 1"):
        assert words in said
    assert "everything ended in order" in said

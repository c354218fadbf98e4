"""What is installed here is what the constraints say, down to the last package."""

import re
from importlib.metadata import distributions
from pathlib import Path

import pytest

CONSTRAINTS = (Path(__file__).parent.parent / "constraints.txt").read_text()
UNPINNED = {"pip", "proofcast", "proofcast-native", "setuptools"}
"""What every virtual environment begins with, and ourselves."""


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_constraints(text: str) -> dict[str, str]:
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return {normalize(name): version for name, version in (line.split("==") for line in lines if line)}


def test_loose_constraint_is_refused() -> None:
    with pytest.raises(ValueError, match="unpack"):
        parse_constraints("click>=8")


@pytest.mark.slow
def test_everything_installed_is_pinned() -> None:
    pinned = parse_constraints(CONSTRAINTS)
    installed = {normalize(found.name): found.version for found in distributions()}
    loose = {name: version for name, version in installed.items() if pinned.get(name) != version}
    assert loose.keys() <= UNPINNED, "install what constraints.txt says, or pin it there"

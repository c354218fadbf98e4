"""What every test may use: `@pytest.mark.needs("anvil")` and seeds that are printed.

A test that needs an outside tool says so by its name in `proofcast doctor`. Where the tool is absent the test is
skipped with a reason that names it and how to get it; where PROOFCAST_REQUIRE lists the name, it fails instead.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from proofcast.cli import doctor

ROOT = Path(__file__).parent.parent
LIBRARIES = {"pipeline": "pyspark", "dashboard": "playwright"}
collect_ignore = [room for room, library in LIBRARIES.items() if not find_spec(library)]
"""Rooms whose library is not installed; `make test` installs all of them, `make test-fast` needs none."""
CHAIN_TOOLS = frozenset({"anvil", "forge"})
"""Whoever needs one of these is marked `chain`, so that `make test-fast` leaves it out."""

CHECKED = {"kernel": doctor.check_kernel, "kafka": doctor.check_kafka}
REMEDIES = {program.name: program.remedy for program in doctor.PROGRAMS} | {
    finding.name: finding.remedy for finding in (doctor.check_data(), doctor.check_kernel(), doctor.check_kafka())
}

# For every Spark that a test or a page starts: the second compiler of the JVM pays off after minutes, which none lasts.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# One profile everywhere: no deadline, because a deadline is a timing assertion; the failing example's blob is printed.
settings.register_profile("proofcast", deadline=None, print_blob=True)
settings.load_profile("proofcast")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*tools): outside tools without which the test is skipped")
    config.addinivalue_line("markers", "chain: starts or compiles for a chain; left out of `make test-fast`")
    config.addinivalue_line("markers", "slow: more than a few seconds; left out of `make test-fast`")
    unknown = get_required() - REMEDIES.keys()
    if unknown:
        raise pytest.UsageError(
            f"PROOFCAST_REQUIRE names `{', '.join(sorted(unknown))}`\nhint: known are {', '.join(sorted(REMEDIES))}"
        )


def pytest_report_header() -> list[str]:
    return [f"left out: tests/{room}, its library is not installed (`make test` does that)" for room in collect_ignore]


def get_required() -> set[str]:
    return set(filter(None, os.environ.get("PROOFCAST_REQUIRE", "").split(",")))


def get_needs(item: pytest.Item) -> set[str]:
    return {tool for marker in item.iter_markers("needs") for tool in marker.args}


def is_present(tool: str) -> bool:
    if tool in CHECKED:
        return CHECKED[tool]().ok
    return (doctor.find_data() if tool == "data" else doctor.find_program(tool)) is not None


@pytest.hookimpl(tryfirst=True)  # before pytest applies `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        needs = get_needs(item)
        assert needs <= REMEDIES.keys(), f"{item.nodeid} needs unknown tools {needs - REMEDIES.keys()}"
        if needs & CHAIN_TOOLS:
            item.add_marker("chain")
        # A worker takes a file whole, for what its tests share; pages share nothing and are the longest.
        item.add_marker(pytest.mark.xdist_group(item.nodeid if item.path.name == "test_docs.py" else str(item.path)))
    # Files with slow tests first: workers take one file after the other, and the last should not be the longest.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for tool in sorted(get_needs(item)):
        if not is_present(tool):
            give_up = pytest.fail if tool in get_required() else pytest.skip
            give_up(f"needs `{tool}`: {REMEDIES[tool]}")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT

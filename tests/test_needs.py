"""The mark `needs` skips, fails or runs; tried on the real conftest.py in a pytest of its own."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow  # each starts a pytest of its own


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text())
    pytester.makepyfile("import pytest\n@pytest.mark.needs('data')\ndef test_it(): pass")
    monkeypatch.setenv("PROOFCAST_DATA", "nowhere")
    monkeypatch.delenv("PROOFCAST_REQUIRE", raising=False)
    return pytester


def test_absent_tool_skips_with_a_reason(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*needs `data`: point PROOFCAST_DATA at it*"])


def test_absent_tool_fails_where_required(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROOFCAST_REQUIRE", "anvil,data")
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*needs `data`*"])


def test_misspelt_requirement_is_refused(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROOFCAST_REQUIRE", "date")
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*PROOFCAST_REQUIRE names `date`*", "hint: known are *data*"])


def test_present_tool_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROOFCAST_DATA", ".")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_chain_tools_are_left_out_of_the_fast_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.needs('anvil')\ndef test_it(): pass")
    pytester.runpytest_subprocess("-m", "not chain").assert_outcomes(deselected=1)

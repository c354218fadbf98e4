"""The door: what a user sees when something is wrong, and what a script sees."""

import sys

import click
import pytest

from proofcast.cli import NOUNS, main, proofcast
from proofcast.errors import InvalidInput, InvalidRequest, Misbehaviour, ProofcastError, Reason, Unavailable


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (InvalidRequest(Reason.BAD_ARGUMENT, "`x` is no number", hint="give one"), 2),
        (InvalidInput(Reason.MALFORMED, "`0x` is no header", hint="ask another node"), 1),
        (Misbehaviour(Reason.DISAGREES, "`a` is not `b`", hint="show the evidence", evidence=b"signed"), 1),
        (Unavailable(Reason.NO_ANSWER, "nobody at `:1`", hint="start a node"), 75),
    ],
)
def test_error_becomes_sentence_hint_and_exit_code(
    error: ProofcastError, exit_code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def fail() -> None:
        raise error

    monkeypatch.setitem(proofcast.commands, "fail", fail)
    assert main(["fail"]) == exit_code
    assert capsys.readouterr() == ("", f"error: {error}\nhint: {error.hint}\n")


def test_bug_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def fail() -> None:
        raise AssertionError

    monkeypatch.setitem(proofcast.commands, "fail", fail)
    with pytest.raises(AssertionError):
        main(["fail"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "error: No such command `nonsense`\nhint: `proofcast --help` shows what it accepts\n"),
        (["doctor", "-x"], "error: No such option `-x`\nhint: `proofcast doctor --help` shows what it accepts\n"),
    ],
)
def test_unknown_words_are_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", message)


def test_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def fail() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(proofcast.commands, "fail", fail)
    assert main(["fail"]) == 130
    assert capsys.readouterr().err.strip() == ""


def test_noun_without_its_library_names_it_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "vodozemac", None)
    for loaded in [name for name in sys.modules if name.startswith(("proofcast.cli.device", "proofcast.groups.io"))]:
        monkeypatch.delitem(sys.modules, loaded)
    assert main(["device", "list"]) == 75
    error = capsys.readouterr().err
    assert "`proofcast device` needs `vodozemac`, which is not installed" in error
    assert "pip install 'proofcast[groups]'" in error


@pytest.mark.parametrize("name", NOUNS)
def test_every_noun_loads_and_says_what_it_is_for(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([name, "--help"])
    printed = capsys.readouterr()
    if code == Unavailable.exit_code and NOUNS[name].extra:
        pytest.skip(printed.err)
    assert (code, printed.err) == (0, "")
    assert f"Usage: proofcast {name}" in printed.out


def test_no_arguments_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "doctor" in capsys.readouterr().out

"""The command line against a chain of its own: what a user types, and what comes back."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proofcast.cli import main
from proofcast.onchain.io.devchain import DevChainOptions
from proofcast.testing.onchain import Playground, rolled_back, run_playground


@dataclass(frozen=True, slots=True)
class Printed:
    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 # whatever the command printed
        assert self.exit_code == 0, self.err
        return json.loads(self.out)

    @property
    def line(self) -> str:
        assert self.exit_code == 0, self.err
        return self.out.rstrip("\n")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A user at a shell: the environment names a node and the first account's key."""

    playground: Playground
    environment: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Printed:
        self.capture.readouterr()
        exit_code = main(list(words))
        return Printed(exit_code, *self.capture.readouterr())

    def use_account(self, number: int) -> str:
        """Sign as another account from now on; its address."""
        account = self.playground.chain.accounts[number]
        self.environment.setenv("PROOFCAST_PRIVATE_KEY", account.private_key)
        return "0x" + account.address.hex()


@pytest.fixture(scope="module")
def shared_playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    with run_playground(tmp_path_factory.mktemp("deployer"), DevChainOptions(tx_gas_limit=True)) as playground:
        yield playground


@pytest.fixture
def cli(
    shared_playground: Playground,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[CommandLine]:
    with rolled_back(shared_playground, tmp_path / "playground") as playground:
        monkeypatch.setenv("PROOFCAST_RPC_URL", playground.chain.url)
        monkeypatch.setenv("PROOFCAST_STATE_DIR", str(tmp_path / "state"))
        command_line = CommandLine(playground, monkeypatch, capsys)
        command_line.use_account(0)
        yield command_line


Refused = Callable[[Printed, int, str], None]


@pytest.fixture
def assert_refused() -> Refused:
    """One sentence that holds the given words, a hint, the exit code, and nothing on stdout."""

    def check(printed: Printed, exit_code: int, words: str) -> None:
        assert (printed.exit_code, printed.out) == (exit_code, ""), printed
        sentence, hint = printed.err.splitlines()[-2:]
        assert sentence.startswith("error: ")
        assert words in sentence
        assert hint.startswith("hint: ")
        assert "Traceback" not in printed.err

    return check

"""`proofcast pipeline`: a bad case is one sentence and an exit code, before Spark is started where that is possible."""

import subprocess
import sys
from pathlib import Path

import pytest

from proofcast.chain.io.recorded import write_blocks
from proofcast.cli import main
from proofcast.testing.chain import ChainSimulator

SEED = 10


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    chain = ChainSimulator(SEED)
    chain.mine(4)
    folder = tmp_path_factory.mktemp("recorded")
    write_blocks(folder, chain.chain_id, [block.raw for block in chain.canonical[1:]])
    return str(folder)


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--source", "http://127.0.0.1:9", "--first", "1"], 75, "`127.0.0.1:9` did not answer"),
        (["--source", "nowhere/", "--first", "1"], 2, "`nowhere/`"),
        (["--source", "{recorded}", "--first", "1", "--chain-id", "1"], 2, "`31337`, not `1`"),
        (["--source", "{recorded}", "--first", "1", "--trust", "sealed"], 75, "not yet `sealed`"),
        (["--source", "{recorded}", "--first", "1", "--checkpoint", "7:0x"], 2, "`7:0x`"),
        (["--source", "{recorded}", "--first", "1", "--abi", "nowhere.json"], 2, "`nowhere.json`"),
        (["--source", "{recorded}", "--first", "1", "--conf", "fast"], 2, "`fast`"),
        (["--source", "{recorded}", "--first", "-1"], 2, "-1"),
    ],
)
def test_bad_case_is_one_sentence(
    arguments: list[str], code: int, word: str, recorded: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format(recorded=recorded) for word in arguments]
    assert main(["pipeline", "backfill", "--tables", str(tmp_path / "tables"), *words]) == code
    said = capsys.readouterr()
    assert said.out == ""
    sentence, hint = said.err.splitlines()
    assert sentence.startswith("error: ")
    assert word in sentence
    assert hint.startswith("hint: ")


def test_help_needs_no_spark() -> None:
    ask = "main(['pipeline', 'follow', '--help']); print('pyspark' in sys.modules)"
    code = f"import sys; from proofcast.cli import main; {ask}"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.endswith("False\n")

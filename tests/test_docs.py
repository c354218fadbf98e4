"""What the documentation shows is what happens: every block that can run is run, every link leads somewhere.

A page's `console` and `python` blocks run in order, in one shell in an empty folder. In a `console` block `$ ` begins a
command and the lines below it are what it prints; `...` stands for anything and the amount of blank space does not
matter. A command must succeed, unless what it prints begins with `error:`. Above a block, `<!-- test: not run: why -->`
leaves it out; `<!-- test: chain -->` on a page gives the page a development chain of its own, and the variables
PROOFCAST_RPC_URL and PROOFCAST_PRIVATE_KEY that lead to it and to one of its accounts; `<!-- test: slow -->` leaves the
page out of `make test-fast`.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofcast.onchain.io.devchain import run_dev_chain

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/**/*.md")])

BLOCK = re.compile(r"(<!-- test: not run: [^\n]+ -->\n)?^```(console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CHAIN = re.compile(r"^<!-- test: chain -->$", re.MULTILINE)
SLOW = re.compile(r"^<!-- test: slow -->$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
END_OF_COMMAND = "\x1e"
"""ASCII record separator: no command prints it."""
PAGE_S_MAX = 300
"""A page that waits for something that never comes must not hang the tests; Spark needs a minute on a busy machine."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a page and what the page says it prints."""

    line: int
    text: str
    expected: str


def parse_page(page: str) -> list[Command]:
    commands = []
    for block in BLOCK.finditer(page):
        skipped, language, text = block.groups()
        line = page.count("\n", 0, block.start()) + 1
        if language == "python" and not skipped:
            commands.append(Command(line, f"python - <<'END_OF_BLOCK'\n{text}END_OF_BLOCK", "..."))
        elif not skipped:
            parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
            commands += [Command(line, *split_command(part)) for part in parts]
    return commands


def split_command(part: str) -> tuple[str, str]:
    """Command and output; a backslash at the end of a line continues the command."""
    command, _, output = re.sub(r"\\\n", " ", part).partition("\n")
    return command, output


def is_as_shown(expected: str, printed: str) -> bool:
    """Equal up to blank space, with `...` standing for anything."""
    pieces = [re.escape(" ".join(piece.split())) for piece in expected.split("...")]
    return re.fullmatch(r"\s?.*?\s?".join(pieces), " ".join(printed.split()), re.DOTALL) is not None


def run_commands(commands: list[Command], folder: Path, variables: dict[str, str]) -> list[tuple[int, str]]:
    """(exit code, output) of each command, all in one shell."""
    script = "".join(f"{command.text}\nprintf '%s{END_OF_COMMAND}' $?\n" for command in commands)
    path = f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"
    shell = subprocess.Popen(
        ["bash", "-c", f"exec 2>&1 </dev/null\n{script}"],
        cwd=folder,
        env=os.environ | {"PATH": path, "PROOFCAST_STATE_DIR": str(folder / "state")} | variables,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = shell.communicate(timeout=PAGE_S_MAX)
    finally:
        with suppress(ProcessLookupError):  # whatever the page left running
            os.killpg(shell.pid, signal.SIGKILL)
    outputs = [re.fullmatch(r"(.*?)(\d+)", part, re.DOTALL) for part in printed.split(END_OF_COMMAND)[:-1]]
    return [(int(output[2]), output[1]) for output in outputs if output]


@contextmanager
def get_variables(page: str) -> Iterator[dict[str, str]]:
    """What leads to the page's own chain, for as long as that runs; nothing where the page wants none."""
    if not CHAIN.search(page):
        yield {}
        return
    with run_dev_chain() as chain:
        yield {"PROOFCAST_RPC_URL": chain.url, "PROOFCAST_PRIVATE_KEY": chain.accounts[0].private_key}


def find_lies(page: str, folder: Path) -> list[str]:
    """What the page shows and what happened instead, for every command where they differ."""
    commands = parse_page(page)
    with get_variables(page) as variables:
        outcomes = run_commands(commands, folder, variables)
    assert len(outcomes) == len(commands), "a command ended the page's shell"
    return [
        f"line {command.line}: `{command.text}` ended with {code} and printed\n{output}"
        for command, (code, output) in zip(commands, outcomes, strict=True)
        if not is_as_shown(command.expected, output) or (code != 0) != command.expected.startswith("error:")
    ]


# --- the test can fail


@pytest.mark.parametrize(
    "block",
    [
        "```console\n$ echo one\ntwo\n```",
        "```console\n$ echo one\n```",
        "```console\n$ echo one\none ... three\n```",
        "```console\n$ false\n```",
        "```console\n$ echo error: no\nerror: no\n```",
        "```console\n$ true\n$ echo two\nthree\n```",
        "```python\nraise SystemExit(1)\n```",
    ],
)
def test_lie_is_found(block: str, tmp_path: Path) -> None:
    assert len(find_lies(f"text\n{block}\n", tmp_path)) == 1


def test_truth_passes(tmp_path: Path) -> None:
    page = "```console\n$ x=1; echo a  \\\n  b > file\n$ cat file; echo $x\na b\n1\n$ seq 9\n1\n...\n9\n```\n"
    refused = "```console\n$ echo error: no; (exit 2)\nerror: ...\n```\n"
    skipped = "<!-- test: not run: takes a week -->\n```console\n$ false\n```\n"
    assert find_lies(page + "```python\nprint(1)\n```\n" + refused + skipped, tmp_path) == []


ASK_CHAIN_ID = """<!-- test: chain -->
```python
import os
from proofcast.chain.io.rpc import RpcClient
with RpcClient(os.environ["PROOFCAST_RPC_URL"]) as rpc:
    assert rpc.call("eth_chainId") == "0x7a69"
```
"""


@pytest.mark.needs("anvil")
def test_chain_page_has_a_chain(tmp_path: Path) -> None:
    assert find_lies(ASK_CHAIN_ID, tmp_path) == []
    assert len(find_lies(ASK_CHAIN_ID.replace("0x7a69", "0x1"), tmp_path)) == 1


# --- the documentation passes


def get_page_parameters() -> list[object]:
    """Pages with something to run."""
    pages = [(page, page.read_text()) for page in PAGES]
    return [
        pytest.param(text, marks=get_marks(text), id=str(page.relative_to(ROOT)))
        for page, text in pages
        if parse_page(text)
    ]


def get_marks(text: str) -> list[pytest.MarkDecorator]:
    chain = [pytest.mark.needs("anvil")] if CHAIN.search(text) else []
    return chain + ([pytest.mark.slow] if SLOW.search(text) else [])


@pytest.mark.parametrize("page", get_page_parameters())
def test_page_shows_what_happens(page: str, tmp_path: Path) -> None:
    assert find_lies(page, tmp_path) == []


def test_links_lead_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in LINK.findall(page.read_text())]
    assert [f"{page.relative_to(ROOT)}: {link}" for page, link in links if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs/index.md"
    listed = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())} | {index}
    assert [str(page) for page in ROOT.glob("docs/**/*.md") if page not in listed] == []


def test_figures_are_those_of_the_results() -> None:
    command = [sys.executable, "-m", "tools.figures"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ROOT / "docs/reference/figures.md").read_text() == printed.stdout, "run `make docs`"


@pytest.mark.slow  # it loads every command, and with them everything that is optional
def test_reference_is_current() -> None:
    printed = subprocess.run([sys.executable, ROOT / "tools/reference.py"], capture_output=True, text=True, check=True)
    assert (ROOT / "docs/reference/cli.md").read_text() == printed.stdout, "run `make docs`"

"""The structural rules of the house, and nothing else; ARCHITECTURE.md holds the list of layers that is enforced here.

Every rule is a function from sources to faults. It is run on the package, where it must find none, and on a small wrong
source made for it, where it must find exactly one.
"""

import ast
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "proofcast"

Sources = Mapping[str, ast.Module]
"""Path inside the package, e.g. `chain/io/rpc.py`, to its syntax tree."""

OUTSIDE_MODULES = frozenset(
    {"aiohttp", "asyncio", "fcntl", "glob", "http", "httpx", "importlib", "io", "mmap", "multiprocessing", "os"}
    | {"pathlib", "psycopg", "pyspark", "random", "requests", "sched", "secrets", "select", "selectors", "shutil"}
    | {"signal", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "time"}
    | {"urllib", "uuid", "websockets"}
)
"""Whoever imports one can reach a socket, file, process, clock or dice."""
INNOCENT_IMPORTS = ("pathlib.Pure", "urllib.parse.")
OUTSIDE_CALLS = frozenset({"open", "input", "print", "__import__", "datetime.now", "datetime.utcnow", "date.today"})
OUTSIDE_ROOMS = frozenset({"cli", "testing"})

# Dots are escaped and a hyphen is bracketed, so that this file does not name what it forbids.
REGISTRY = re.compile(
    r"registry\.(npmjs|yarnpkg)\.(org|com)|pypi\.org|pythonhosted\.org|(static|index)\.crates\.io|repo1?\.maven\.(apache\.)?org"
    r"|proxy\.golang\.org|deb\.debian\.org|--(extra-)?index-url|--find[-]links"
)
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(?:root|work|home|Users)/\w")


# --- reading


@cache
def read_sources(folder: Path) -> Sources:
    return {path.relative_to(folder).as_posix(): ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py"))}


def read_layers(architecture: str) -> dict[str, int]:
    """Room to its height, from the list under the sentence `Imports point down`; neighbours share a height."""
    block = re.search(r"Imports point down.*?```\n(.*?)```", architecture, re.DOTALL)
    assert block, "ARCHITECTURE.md has no list of layers"
    lines = [line.split("(")[0].strip() for line in reversed(block.group(1).splitlines())]
    return {room.strip(): height for height, line in enumerate(lines) for room in line.split("·")}


LAYERS = read_layers((ROOT / "ARCHITECTURE.md").read_text())


def get_module(path: str) -> str:
    parts = PurePosixPath("proofcast", path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def get_room(module: str) -> str:
    """`chain` of `proofcast.chain.io.rpc`; empty for the package itself, which holds the version alone."""
    return [*module.split("."), ""][1]


def iterate_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import; `from a import b` is `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{'.' * node.level}{node.module or ''}.{alias.name}") for alias in node.names)


def iterate_own_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    return ((line, name) for line, name in iterate_imports(tree) if name.split(".")[0] == "proofcast")


# --- rules


def find_upward_imports(sources: Sources) -> Iterator[str]:
    for path, tree in sources.items():
        for line, name in iterate_own_imports(tree):
            if get_room(name) != "__version__" and not is_below(get_module(path), name):
                yield f"{path}:{line} imports `{name}`, which is not below it"


def is_below(importer: str, imported: str) -> bool:
    """Same room or a lower one; `testing/chain.py` stands where `chain` does, except that only tests look up to it."""
    own, other = get_room(importer), get_room(imported)
    if own != "testing":
        return own == other or LAYERS[other] < LAYERS[own]
    room = get_room(importer.removeprefix("proofcast."))
    other = get_room(imported.removeprefix("proofcast.")) if other == "testing" else other
    return room != "" and (room == other or LAYERS[other] < LAYERS[room])


def find_unlisted_rooms(sources: Sources) -> Iterator[str]:
    rooms = {get_room(get_module(path)) for path in sources} - {""}
    yield from (f"`{room}` is in no layer of ARCHITECTURE.md" for room in sorted(rooms - LAYERS.keys()))


def find_outside_touched(sources: Sources) -> Iterator[str]:
    for path, tree in sources.items():
        parts = PurePosixPath(path).parts
        if "io" in parts[:-1] or parts[0] in OUTSIDE_ROOMS:
            continue
        for line, name in iterate_imports(tree):
            allowed = name.startswith(INNOCENT_IMPORTS) or (parts[0] == "pipeline" and name.startswith("pyspark"))
            if name.split(".")[0] in OUTSIDE_MODULES and not allowed:
                yield f"{path}:{line} imports `{name}` outside `io/`"
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = ".".join(ast.unparse(call.func).split(".")[-2:])
            if name in OUTSIDE_CALLS:
                yield f"{path}:{call.lineno} calls `{name}` outside `io/`"


def find_hidden_imports(sources: Sources) -> Iterator[str]:
    for path, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from (f"{path}:{line} imports `{name}` inside a function" for line, name in iterate_imports(node))


def find_relative_imports(sources: Sources) -> Iterator[str]:
    for path, tree in sources.items():
        yield from (f"{path}:{line} imports `{name}`" for line, name in iterate_imports(tree) if name.startswith("."))


def find_cycles(sources: Sources) -> Iterator[str]:
    modules = {get_module(path) for path in sources}
    graph: dict[str, set[str]] = {}
    for path, tree in sources.items():
        names = [name for _, name in iterate_own_imports(tree)]
        graph[get_module(path)] = {name if name in modules else name.rpartition(".")[0] for name in names}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"`{' -> '.join(error.args[1])}` import each other"


def find_empty_folders(sources: Sources) -> Iterator[str]:
    """A folder appears when it has content: some statement besides docstrings, in it or below it."""
    folders = {parent for path in sources for parent in PurePosixPath(path).parents}
    filled = {
        parent
        for path, tree in sources.items()
        if any(not isinstance(node, ast.Expr) for node in tree.body)
        for parent in PurePosixPath(path).parents
    }
    yield from (f"`{folder}/` is an empty shell" for folder in sorted(folders - filled))


def find_addresses(files: Mapping[str, str]) -> Iterator[str]:
    for path, text in files.items():
        for number, line in enumerate(text.splitlines(), start=1):
            if REGISTRY.search(line):
                yield f"{path}:{number} names a package registry"
            if MACHINE_PATH.search(line):
                yield f"{path}:{number} names a path of one machine"


# --- the rules can fail

WRONG: list[tuple[Callable[[Sources], Iterator[str]], dict[str, str], str]] = [
    (find_upward_imports, {"chain/a.py": "import proofcast.broker.b"}, "chain/a.py:1 imports `proofcast.broker.b`"),
    (find_upward_imports, {"chain/a.py": "from proofcast.routing import key"}, "`proofcast.routing.key`"),
    (find_upward_imports, {"chain/a.py": "from proofcast import cli"}, "`proofcast.cli`"),
    (find_upward_imports, {"errors.py": "import proofcast.event"}, "`proofcast.event`"),
    (find_upward_imports, {"testing/chain.py": "import proofcast.onchain.calls"}, "`proofcast.onchain.calls`"),
    (find_upward_imports, {"testing/chain.py": "import proofcast.testing.onchain"}, "`proofcast.testing.onchain`"),
    (find_upward_imports, {"testing/__init__.py": "import proofcast.event"}, "testing/__init__.py:1"),
    (find_unlisted_rooms, {"utils/a.py": "X = 1"}, "`utils`"),
    (find_outside_touched, {"chain/a.py": "import socket"}, "imports `socket`"),
    (find_outside_touched, {"chain/a.py": "from os import urandom"}, "imports `os.urandom`"),
    (find_outside_touched, {"chain/a.py": "from pathlib import Path"}, "imports `pathlib.Path`"),
    (find_outside_touched, {"chain/a.py": "X = open('x')"}, "calls `open`"),
    (find_outside_touched, {"chain/a.py": "X = datetime.datetime.now()"}, "calls `datetime.now`"),
    (find_outside_touched, {"chain/io.py": "import sqlite3"}, "imports `sqlite3`"),
    (find_outside_touched, {"chain/a.py": "from pyspark import sql"}, "imports `pyspark.sql`"),
    (find_hidden_imports, {"cli/a.py": "def f():\n    import json"}, "cli/a.py:2 imports `json` inside"),
    (find_relative_imports, {"chain/a.py": "from .b import c"}, "imports `.b.c`"),
    (
        find_cycles,
        {"chain/a.py": "import proofcast.chain.b", "chain/b.py": "from proofcast.chain import a"},
        "each other",
    ),
    (find_empty_folders, {"chain/__init__.py": '"""Nothing yet."""', "event.py": "X = 1"}, "`chain/`"),
]
RIGHT = {
    "chain/io/rpc.py": "import socket\nfrom proofcast.chain.steps import X\nfrom proofcast import __version__",
    "chain/steps.py": "from urllib.parse import urlsplit\nfrom proofcast.event import Event\nX = 1",
    "cli/chain.py": "import time\nimport proofcast.chain.io.rpc\nprint(1)",
    "pipeline/jobs.py": "from pyspark import sql",
    "testing/chain.py": "import random\nimport proofcast.chain.steps\nimport proofcast.event",
    "event.py": "from datetime import datetime\nclass Event: pass",
}
RULES = (
    find_upward_imports,
    find_unlisted_rooms,
    find_outside_touched,
    find_hidden_imports,
    find_relative_imports,
    find_cycles,
    find_empty_folders,
)


def write_sources(folder: Path, files: Mapping[str, str]) -> Sources:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return read_sources(folder)


@pytest.mark.parametrize(("rule", "files", "fault"), WRONG)
def test_wrong_source_is_found(
    rule: Callable[[Sources], Iterator[str]], files: dict[str, str], fault: str, tmp_path: Path
) -> None:
    (found,) = rule(write_sources(tmp_path, files))
    assert fault in found


def test_every_rule_has_a_wrong_source() -> None:
    assert {rule for rule, _, _ in WRONG} == set(RULES)


@pytest.mark.parametrize(
    "line", ["https://pypi." + "org/simple", "--index" + "-url x", "open('/ro" + "ot/x')", "/ho" + "me/me/x"]
)
def test_address_is_found(line: str) -> None:
    assert next(find_addresses({"a": "fine\n" + line})).startswith("a:2 ")


@pytest.mark.parametrize("rule", RULES)
def test_right_source_passes(rule: Callable[[Sources], Iterator[str]], tmp_path: Path) -> None:
    assert list(rule(write_sources(tmp_path, RIGHT))) == []


# --- the house obeys them


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_package_obeys(rule: Callable[[Sources], Iterator[str]]) -> None:
    assert list(rule(read_sources(PACKAGE))) == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a git checkout: clone the repository")
@pytest.mark.slow
def test_tracked_files_name_no_registry_and_no_machine() -> None:
    git = shutil.which("git")
    assert git, "a git checkout without git"
    listed = subprocess.run([git, "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    texts = {str(path.relative_to(ROOT)): path.read_text(errors="ignore") for path in paths if path.is_file()}
    assert list(find_addresses(texts)) == []

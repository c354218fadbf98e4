"""`proofcast doctor`: what works on this machine, what does not, and how to get it.

The table below is the one list of outside programs the project knows; tests that need one of them ask here too.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata, resources
from pathlib import Path

import click
from eth_keys.backends import get_backend

from proofcast.errors import Reason, Unavailable
from proofcast.ethereum.kernel import IS_NATIVE, WIDTHS

PROBE_S_MAX = 20
"""`mvn --version` starts a JVM and needs about a second on a slow machine; a program that hangs must not hang us."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    name: str
    ok: bool
    needed: bool
    found: str
    """Version, place or shortcoming."""
    purpose: str
    remedy: str
    """How to get it."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the machine, found under the first of its names that exists."""

    name: str
    aliases: tuple[str, ...]
    version_flag: str
    major_min: int
    purpose: str
    remedy: str


FROM_CONTRACTS = "`make test` in a checkout installs it, or install Foundry and put it on PATH"
FROM_APT = "`make system-deps` in a checkout installs it by apt"
KAFKA_JARS = Path(__file__).parents[3] / ".setup" / "kafka"
POSTGRES_ON_DEBIAN = Path("/usr/lib/postgresql")
"""Debian keeps the server of each major version in a folder below, outside PATH."""
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")

PROGRAMS = (
    Program("node", ("node",), "--version", 20, "runs the Solidity compiler", "install Node.js 20 or newer"),
    Program("npm", ("npm",), "--version", 1, "fetches the contract tool chain", "comes with Node.js"),
    Program("anvil", ("anvil",), "--version", 1, "the development chain", FROM_CONTRACTS),
    Program("forge", ("forge",), "--version", 1, "builds and tests the contracts", FROM_CONTRACTS),
    Program("java", ("java",), "-version", 17, "runs Spark", "install a Java 17 runtime, e.g. `openjdk-17-jre`"),
    Program("postgres", ("postgres",), "--version", 13, "will hold the broker's store", FROM_APT),
    Program("chromium", CHROMIUM_NAMES, "--version", 100, "tests the dashboard", FROM_APT),
    Program("cargo", ("cargo",), "--version", 1, "builds the compiled kernels", "install Rust, e.g. with rustup"),
    Program("go", ("go",), "version", 1, "will build Fabric's peers", "install Go 1.22 or newer"),
    Program("mvn", ("mvn",), "--version", 3, "fetches Spark's connectors", "install Maven 3"),
)
"""None is needed to use the package against a node that runs elsewhere; each unlocks what its purpose says."""


def find_program(name: str) -> str | None:
    """Path of a program: named by the environment (`PROOFCAST_ANVIL=...`), else beside this Python, else on PATH."""
    program = next(known for known in PROGRAMS if known.name == name)
    named = os.environ.get(f"PROOFCAST_{name.upper()}")
    if named:
        return shutil.which(named)
    places = [f"{sys.prefix}/bin", os.environ.get("PATH", ""), *map(str, POSTGRES_ON_DEBIAN.glob("*/bin"))]
    found = (shutil.which(alias, path=os.pathsep.join(places)) for alias in program.aliases)
    return next(filter(None, found), None)


def read_version(path: str, flag: str) -> str:
    """The first dotted number a program prints about itself, wherever it prints it; empty where it prints none."""
    try:
        answer = subprocess.run([path, flag], capture_output=True, text=True, timeout=PROBE_S_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    number = re.search(r"\d+(\.\d+)+", answer.stdout + answer.stderr)
    return number.group() if number else ""


def check_program(program: Program) -> Finding:
    """Is it here, does it start, and is it new enough?"""
    path = find_program(program.name)
    version = read_version(path, program.version_flag) if path else ""
    ok = bool(version) and int(version.split(".")[0]) >= program.major_min
    shortcoming = f"`{path}` does not start" if path else "missing"
    if version and not ok:
        shortcoming = f"{version} is older than {program.major_min}"
    found = version if ok else shortcoming
    return Finding(program.name, ok, False, found, program.purpose, program.remedy)


def check_python() -> Finding:
    """The interpreter that runs this very command."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info >= (3, 11), True, version, "runs Proofcast", "install Python 3.11")


def check_signing() -> Finding:
    """eth-keys falls back to pure Python, eight times slower, without a word: so say it."""
    backend = type(get_backend()).__name__
    ok = backend == "CoinCurveECCBackend"
    return Finding("coincurve", ok, True, backend, "signs transactions fast", "`pip install coincurve`")


def check_artefacts() -> Finding:
    """Users need no Solidity compiler because the compiled contracts are inside the package."""
    folder = resources.files("proofcast").joinpath("onchain", "artefacts")
    count = sum(entry.name.endswith(".json") for entry in folder.iterdir()) if folder.is_dir() else 0
    return Finding("artefacts", count > 0, True, f"{count} contracts", "compiled contracts", "reinstall the package")


def find_data() -> Path | None:
    """Folder of recorded blocks and other test material: `PROOFCAST_DATA`, else beside the checkout."""
    folder = Path(os.environ.get("PROOFCAST_DATA") or "../shared/data")
    return folder if folder.is_dir() else None


def check_data() -> Finding:
    """Only tests read it."""
    folder = find_data()
    found = str(folder) if folder else "missing"
    return Finding("data", folder is not None, False, found, "recorded test material", "point PROOFCAST_DATA at it")


def check_kernel() -> Finding:
    """Optional: without it every result is the same, only later."""
    found = f"compiled, {WIDTHS[-1]} lanes" if IS_NATIVE else "Python serves instead"
    remedy = "`tools/native` in a checkout builds it where Rust is installed"
    return Finding("kernel", IS_NATIVE, False, found, "verifies blocks fast", remedy)


def check_spark() -> Finding:
    """Optional: only `proofcast pipeline` needs it."""
    remedy = "`pip install 'proofcast[spark]'`; `make test` in a checkout installs it"
    try:
        found = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        found = ""
    return Finding("spark", bool(found), False, found or "missing", "makes tables of chains", remedy)


def check_kafka() -> Finding:
    """Optional: a broker's Kafka sink is tested against it."""
    ok = KAFKA_JARS.exists() and find_program("java") is not None
    remedy = "`tools/kafka-jars` in a checkout fetches it, with Maven"
    return Finding("kafka", ok, False, "jars" if ok else "missing", "takes what the broker's sink writes", remedy)


CHECKS: tuple[Callable[[], Finding], ...] = (
    check_python,
    check_signing,
    check_artefacts,
    check_data,
    check_kernel,
    check_spark,
    check_kafka,
)


def examine() -> list[Finding]:
    """Everything the report says, needed things first."""
    return [check() for check in CHECKS] + [check_program(program) for program in PROGRAMS]


def format_finding(finding: Finding) -> str:
    """One line: state, name, version, purpose and, only where it helps, the remedy."""
    state = "ok" if finding.ok else "missing"
    line = f"{state:8}{finding.name:11}{finding.found:22} {finding.purpose}"
    return line if finding.ok else f"{line}; {finding.remedy}"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead of lines.")
def doctor(as_json: bool) -> None:
    """Say what works on this machine, what does not, and how to get it."""
    findings = examine()
    as_lines = "\n".join(map(format_finding, findings))
    click.echo(json.dumps([asdict(finding) for finding in findings], indent=2) if as_json else as_lines)
    lacking = [finding for finding in findings if finding.needed and not finding.ok]
    if lacking:
        names = ", ".join(f"`{finding.name}`" for finding in lacking)
        raise Unavailable(Reason.TOOL_MISSING, f"{names} cannot be used here", hint=lacking[0].remedy)

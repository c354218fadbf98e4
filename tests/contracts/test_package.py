"""The Solidity package as a stranger meets it: packed, put into an empty project, used as its README says."""

import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

FILE = re.compile(r"^<!-- (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block of the README that is a whole file, under a comment with its path."""


def unpack_package(contracts: Path, project: Path) -> None:
    packed = subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", project],
        cwd=contracts,
        capture_output=True,
        text=True,
        check=True,
    )
    modules = project / "node_modules"
    with tarfile.open(project / packed.stdout.strip()) as archive:
        archive.extractall(modules / "@proofcast", filter="data")
    (modules / "@proofcast/package").rename(modules / "@proofcast/contracts")


def link_dependencies(contracts: Path, project: Path) -> None:
    """What the stranger would install: OpenZeppelin by npm, forge-std by forge."""
    (project / "node_modules/@openzeppelin").symlink_to(contracts / "node_modules/@openzeppelin")
    (project / "lib/forge-std").mkdir(parents=True)
    forge_std = contracts / "node_modules/@layerzerolabs/toolbox-foundry/lib/forge-std"
    (project / "lib/forge-std/src").symlink_to(forge_std)


def write_files(readme: str, project: Path) -> list[str]:
    files = dict(FILE.findall(readme))
    for path, text in files.items():
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_text(text)
    return sorted(files)


@pytest.mark.needs("forge")
def test_readme_project_compiles_and_passes(root: Path, tmp_path: Path) -> None:
    contracts = root / "contracts"
    unpack_package(contracts, tmp_path)
    link_dependencies(contracts, tmp_path)
    written = write_files((contracts / "README.md").read_text(), tmp_path)
    assert written == ["foundry.toml", "src/FrostAlarm.sol", "test/FrostAlarm.t.sol"]

    compiler = {"FOUNDRY_SOLC": str(contracts / "tools/solc"), "FOUNDRY_OFFLINE": "true"}
    answer = subprocess.run(
        ["forge", "test"], cwd=tmp_path, env=os.environ | compiler, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "1 tests passed, 0 failed" in answer.stdout

"""What deploy/ holds is well-formed; no engine runs it here."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = "proofcast.service"


@pytest.fixture
def deploy(root: Path) -> Path:
    return root / "deploy"


def test_unit_is_accepted_by_systemd(deploy: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs `systemd-analyze`: install systemd")
    text = (deploy / UNIT).read_text()
    assert "/opt/proofcast/bin/proofcast up" in text
    copy = tmp_path / UNIT
    copy.write_text(text.replace("/opt/proofcast/bin/proofcast", shutil.which("true") or "/bin/true"))
    judged = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True, check=False)
    assert (judged.returncode, judged.stderr) == (0, "")


def test_dockerfile_copies_what_there_is(deploy: Path, root: Path) -> None:
    lines = (deploy / "Dockerfile").read_text().splitlines()
    words = [line.split() for line in lines if line.startswith("COPY ") and "--from" not in line]
    assert words
    assert [source for line in words for source in line[1:-1] if not (root / source).exists()] == []


def test_composition_names_what_there_is(deploy: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    found = yaml.safe_load((deploy / "compose.yaml").read_text())
    services = found["services"]
    assert (deploy / services["proofcast"]["build"]["context"] / services["proofcast"]["build"]["dockerfile"]).exists()
    assert all("127.0.0.1:" in port for service in services.values() for port in service.get("ports", []))
    mounted = [one.split(":")[0] for service in services.values() for one in service.get("volumes", [])]
    assert [one for one in mounted if not (one in found["volumes"] or (deploy / one).exists())] == []


def test_proxy_passes_streams_on_at_once(deploy: Path) -> None:
    text = re.sub(r"#.*", "", (deploy / "nginx.conf").read_text())
    assert text.count("{") == text.count("}")
    assert "proxy_buffering off;" in text
    assert all(line.rstrip().endswith((";", "{", "}")) for line in text.splitlines() if line.strip())

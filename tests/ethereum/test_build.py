"""The kernel is optional: where there is no Rust, set-up says so and goes on."""

import shutil
import subprocess
from pathlib import Path


def test_machine_without_rust_is_no_failure(root: Path, tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell
    answer = subprocess.run(
        [shell, root / "tools/native"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert answer.stdout == ""
    assert answer.stderr.startswith("set-up: `cargo` is missing, so the Python definitions serve")
    assert answer.stderr.count("\n") == 1

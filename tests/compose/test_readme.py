"""The README's example of the SDK, run against a broker."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from proofcast.testing.dashboard import run_stage

EXAMPLE = re.compile(r"```python\n([^`]*subscribe\(\"flights\"[^`]*)```")


@pytest.mark.slow
@pytest.mark.needs("anvil")
def test_example_prints_events_as_they_come(root: Path, tmp_path: Path) -> None:
    found = EXAMPLE.search((root / "README.md").read_text())
    assert found
    assert len(found[1].strip().splitlines()) <= 10
    with run_stage(tmp_path) as stage:
        topic = stage.create_topic("flights")
        stage.publish(topic, b"LH 400 lands at 12:05")
        environment = os.environ | {"PROOFCAST_BROKER_URL": stage.url, "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            [sys.executable, "-c", found[1]], env=environment, stdout=subprocess.PIPE, text=True
        ) as program:
            assert program.stdout
            first = program.stdout.readline()
            stage.publish(topic, b"LH 400 has landed")
            second = program.stdout.readline()
            stage.reorganize(1)
            third = program.stdout.readline()
            program.kill()
    assert first == "event 1: LH 400 lands at 12:05 (linked)\n"
    assert second == "event 2: LH 400 has landed (linked)\n"
    assert third == "the chain took back event 2\n"

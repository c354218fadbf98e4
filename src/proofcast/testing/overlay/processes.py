"""Peers as processes."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def start_peer(state: Path, *options: str) -> Iterator[str]:
    """A running peer; gives its address and ends it as Ctrl-C does."""
    command = [sys.executable, "-m", "proofcast.cli", "peer", "start", "--state", str(state), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.send_signal(signal.SIGINT)

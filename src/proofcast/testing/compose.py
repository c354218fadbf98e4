"""`proofcast up` for the length of a `with`, as a process of its own."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from proofcast.errors import Reason, Unavailable

EXPORT = re.compile(r"export PROOFCAST_(\w+)=(\S+)")
END_S_MAX = 60.0
FREE_PORTS = ("--port", "0", "--chain-port", "0")
LAST = "BROKER_URL"
"""What is exported last, when everything is ready."""


@dataclass(slots=True)
class Up:
    process: subprocess.Popen[str]
    exports: dict[str, str]
    said: list[str] = field(default_factory=list)
    """The lines of its log."""

    @property
    def broker_url(self) -> str:
        return self.exports["BROKER_URL"]

    @property
    def rpc_url(self) -> str:
        return self.exports["RPC_URL"]

    @property
    def private_key(self) -> str:
        return self.exports["PRIVATE_KEY"]

    def end(self) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(END_S_MAX)


@contextmanager
def run_up(folder: Path, *words: str, watch: Callable[[str], None] = lambda line: None) -> Iterator[Up]:
    """On free ports, ready to be used; whatever happens, it is gone afterwards."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "proofcast.cli",
            "up",
            "--data",
            str(folder),
            "--port",
            "0",
            "--chain-port",
            "0",
            *words,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        start_new_session=True,  # Ctrl-C reaches us alone, and we end it in order
    )
    up = Up(process, {})
    reader = threading.Thread(target=read_log, args=(up, watch), daemon=True)
    reader.start()
    try:
        read_exports(up)
        yield up
    finally:
        if process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                up.end()
        process.kill()
        process.wait()
        reader.join()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def read_log(up: Up, watch: Callable[[str], None]) -> None:
    assert up.process.stderr
    for line in up.process.stderr:
        up.said.append(line.rstrip("\n"))
        watch(up.said[-1])


def read_exports(up: Up) -> None:
    """Until it is ready, which is said last."""
    assert up.process.stdout
    for line in up.process.stdout:
        found = EXPORT.fullmatch(line.strip())
        if found:
            up.exports[found[1]] = found[2]
        if LAST in up.exports:
            return
    up.process.wait()
    said = dict(line.split(": ", 1) for line in up.said if line.startswith(("error: ", "hint: ")))
    raise Unavailable(
        Reason.NO_ANSWER, said.get("error", "`proofcast up` ended at once"), hint=said.get("hint", "try it by itself")
    )

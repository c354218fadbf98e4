"""A server of one's own as a child process: for demonstrations, tests and measurements."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import uvloop

from proofcast.errors import ProofcastError, Reason, Unavailable
from proofcast.groups.io.processes import Options
from proofcast.groups.io.sequencer import Running, run_server

STOP_S_MAX = 10


@dataclass(frozen=True, slots=True)
class LaunchedServer:
    running: Running
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return self.running.urls[0]

    def kill(self) -> None:
        """End all its processes at once, without a chance to tidy up."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()


def launch_server(options: Options) -> LaunchedServer:
    """Start a server in a process group of its own, and return when its doors are open."""
    request = json.dumps(asdict(options))
    command = [sys.executable, "-m", "proofcast.groups.io.launch", request]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
    if not line:
        message = f"the group server ended with code `{process.wait()}`"
        raise Unavailable(Reason.NO_ANSWER, message, hint="its own words stand above")
    fields = json.loads(line)
    running = Running(bytes.fromhex(fields["server_key"]), tuple(fields["urls"]), fields["epoch"])
    return LaunchedServer(running, process)


@contextmanager
def run_launched_server(options: Options) -> Iterator[LaunchedServer]:
    server = launch_server(options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def announce(running: Running) -> None:
    fields = {"server_key": running.server_key.hex(), "urls": running.urls, "epoch": running.epoch}
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def main() -> None:
    try:
        uvloop.run(run_server(Options(**json.loads(sys.argv[1])), announce))
    except ProofcastError as error:
        sys.stderr.write(f"error: {error}\nhint: {error.hint}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()

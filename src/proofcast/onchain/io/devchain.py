"""A development chain: anvil on loopback, started, asked until it answers, and stopped by its process id."""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofcast.chain.io.answers import parse_bytes, parse_quantity
from proofcast.chain.io.rpc import RpcClient
from proofcast.errors import InvalidRequest, Reason, Unavailable

ANVIL_VARIABLE = "PROOFCAST_ANVIL"
START_S_MAX = 20.0
"""anvil is up in a tenth of a second; a loaded machine may need a hundred times that."""
STOP_S_MAX = 5.0
POLL_S = 0.02
GAS_LIMIT = 30_000_000
GAS_LIMIT_SPREAD = 1 << 20
"""Added at random: chains are known by their first block, and those started in one second must differ in it."""
STATE_EVERY_S = "2"
"""A chain that is killed loses so much of its history; writing takes milliseconds."""
LISTENING = re.compile(r"Listening on (127\.0\.0\.1:\d+)")


@dataclass(frozen=True, slots=True)
class DevChainOptions:
    port: int = 0
    """0 for any free one."""
    hardfork: str | None = None
    """e.g. `shanghai`; None for the newest that anvil knows."""
    optimism: bool = False
    block_time_s: int | None = None
    """None mines a block per transaction."""
    gas_limit: int | None = None
    tx_gas_limit: bool = False
    """Enforce EIP-7825's 2^24 gas per transaction."""
    state_file: Path | None = None
    """Where the chain is kept, so that the next one goes on from there; None forgets it."""

    def get_flags(self) -> list[str]:
        flags = ["--host", "127.0.0.1", "--port", str(self.port)]
        flags += ["--hardfork", self.hardfork] if self.hardfork else []
        flags += ["--network", "optimism"] if self.optimism else []
        flags += ["--block-time", str(self.block_time_s)] if self.block_time_s else []
        flags += ["--gas-limit", str(self.gas_limit or GAS_LIMIT + secrets.randbelow(GAS_LIMIT_SPREAD))]
        flags += ["--enable-tx-gas-limit"] if self.tx_gas_limit else []
        flags += ["--state", str(self.state_file), "--state-interval", STATE_EVERY_S] if self.state_file else []
        return flags


DEFAULT_OPTIONS = DevChainOptions()


@dataclass(frozen=True, slots=True)
class DevAccount:
    """An account with play money; anvil's keys are the same everywhere and known to everybody."""

    address: bytes
    private_key: str


@dataclass(frozen=True, slots=True)
class DevChain:
    url: str
    chain_id: int
    accounts: tuple[DevAccount, ...]
    process: subprocess.Popen[bytes]


@contextmanager
def run_dev_chain(options: DevChainOptions = DEFAULT_OPTIONS) -> Iterator[DevChain]:
    """A chain for the length of a `with`; it is gone afterwards, however the block ends."""
    anvil = find_anvil()
    with interrupted_by_signals(), tempfile.TemporaryDirectory(prefix="proofcast-anvil-") as folder:
        output, config = Path(folder, "output"), Path(folder, "config.json")
        command = [anvil, *options.get_flags(), "--config-out", str(config)]
        with output.open("wb") as sink:
            # In its own process group: Ctrl-C reaches us alone, and we stop it in order.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
            )
        try:
            yield wait_until_ready(process, output, config)
        finally:
            stop(process)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Have SIGTERM, and SIGINT even where our parent ignores it, end the program through every `finally`.

    A chain must not outlive its program.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(number, signal.default_int_handler) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, previous, strict=True):
            signal.signal(number, handler)


def find_anvil() -> str:
    """Named by the environment, else beside this Python (where `make` puts it), else on PATH."""
    named = os.environ.get(ANVIL_VARIABLE)
    found = named or shutil.which("anvil", path=f"{sys.prefix}/bin{os.pathsep}{os.environ.get('PATH', '')}")
    if not found or not os.access(found, os.X_OK):
        raise Unavailable(
            Reason.TOOL_MISSING,
            f"`{named}` cannot be run" if named else "`anvil` is not installed",
            hint=f"`make test` in a checkout installs it; or install Foundry, or set `{ANVIL_VARIABLE}` to its path",
        )
    return found


def wait_until_ready(process: subprocess.Popen[bytes], output: Path, config: Path) -> DevChain:
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        said = output.read_text(errors="replace")
        if process.poll() is not None:
            raise refuse_start(said)
        listening = LISTENING.search(said)
        if listening and config.exists():
            return describe(f"http://{listening[1]}", config, process)
        time.sleep(POLL_S)
    raise Unavailable(
        Reason.NO_ANSWER, f"anvil was not ready after `{START_S_MAX:g}` seconds", hint="try again on a calmer machine"
    )


def refuse_start(said: str) -> InvalidRequest:
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "no reason")
    why = next((line for line in said.splitlines() if "error" in line.lower()), last)
    return InvalidRequest(
        Reason.BAD_ARGUMENT,
        f"anvil did not start: `{why.strip()}`",
        hint="another port or hardfork may do; `anvil --help` lists the hardforks",
    )


def describe(url: str, config: Path, process: subprocess.Popen[bytes]) -> DevChain:
    with RpcClient(url) as rpc:
        chain_id = parse_quantity(rpc.call("eth_chainId"))
    kept = json.loads(config.read_text())
    pairs = zip(kept["available_accounts"], kept["private_keys"], strict=True)
    accounts = tuple(DevAccount(parse_bytes(address), key) for address, key in pairs)
    return DevChain(url, chain_id, accounts, process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and make it end where it does not."""
    process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

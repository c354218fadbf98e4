"""The driver of `compose/supervision.py`: it starts and ends processes as it is told, and decides nothing."""

import asyncio
import ctypes
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from proofcast.compose.plan import Component
from proofcast.compose.supervision import AllReady, Ask, Failure, Finish, Kill, Output, Say, Start, Supervision

LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
PARENT_DIED = 1
"""`PR_SET_PDEATHSIG` of prctl."""
PROGRAM = (sys.executable, "-m", "proofcast.cli")
CHUNK = 1 << 16
"""Bytes read at a time, and the most that is kept of a line."""
Word = TypeVar("Word", str, int)

Report = Callable[[], list[Output]]
"""Something that has happened, told to the supervision when it is looked at."""


class Processes:
    """Children are known by their process ids and in sessions of their own: Ctrl-C reaches us alone."""

    def __init__(
        self,
        plan: Sequence[Component],
        logs: Path,
        environment: Mapping[str, str],
        say: Callable[[str, str], None],
        on_ready: Callable[[], None],
    ) -> None:
        self._supervision = Supervision(plan)
        self._logs, self._environment = logs, environment
        self._say, self._on_ready = say, on_ready
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._reports: asyncio.Queue[Report] = asyncio.Queue()
        self._watchers: set[asyncio.Task[None]] = set()
        self._is_finished = False
        self._failure: Failure | None = None

    async def run(self) -> Failure | None:
        """Until all have ended, because the user wanted it or because one cannot be kept alive."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._reports.put_nowait, lambda: self._supervision.end(time.monotonic()))
        await self._perform(self._supervision.begin(time.monotonic()))
        while not self._is_finished:
            report = await self._wait()
            outputs = report() if report else []
            await self._perform(outputs + self._supervision.tick(time.monotonic()))
        return self._failure

    async def _wait(self) -> Report | None:
        """The next report, or None when time decides."""
        deadline = self._supervision.deadline()
        left = None if deadline is None else max(deadline - time.monotonic(), 0)
        try:
            async with asyncio.timeout(left):
                return await self._reports.get()
        except TimeoutError:
            return None

    async def _perform(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            match output:
                case Start(component):
                    await self._start(component)
                case Ask(name):
                    self._signal(name, signal.SIGINT)
                case Kill(name):
                    self._signal(name, signal.SIGKILL)
                case Say(name, text):
                    self._say(name, text)
                case AllReady():
                    self._on_ready()
                case Finish(failure):
                    self._is_finished, self._failure = True, failure

    def _signal(self, name: str, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has ended by itself, which is reported already
            self._running[name].send_signal(number)

    async def _start(self, component: Component) -> None:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            *component.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        self._running[component.name] = process
        watcher = asyncio.create_task(self._watch(component.name, process))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    def _report(self, tell: Callable[[str, Word, float], list[Output]], name: str, word: Word) -> None:
        self._reports.put_nowait(lambda: tell(name, word, time.monotonic()))

    async def _watch(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Everything it prints goes into its log, and line by line to the supervision; then its end."""
        assert process.stdout
        rest = ""
        with (self._logs / f"{name}.log").open("ab") as log:
            while data := await process.stdout.read(CHUNK):
                log.write(data)
                log.flush()
                *lines, rest = (rest + data.decode(errors="replace"))[-CHUNK:].split("\n")
                for line in lines:
                    self._report(self._supervision.hear, name, line)
        self._report(self._supervision.bury, name, await process.wait())


def end_with_parent() -> None:
    """Called in a child: whoever kills us past all handlers does not leave a chain and a JVM behind."""
    if LIBC is not None:
        LIBC.prctl(PARENT_DIED, signal.SIGINT)

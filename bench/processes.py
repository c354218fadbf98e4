"""CPU time and memory of this process and of all that it has started, out of /proc."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.5
"""Between two looks at memory: batches last seconds, and looking costs milliseconds."""


def list_tree(root: int | None = None) -> list[int]:
    """A process, this one unless it is named, and its descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        fields = read_fields(int(entry.name)) if entry.name.isdigit() else None
        if fields:
            parents[int(entry.name)] = int(fields[1])
    tree = {root or os.getpid()}
    while found := {child for child, parent in parents.items() if parent in tree and child not in tree}:
        tree |= found
    return sorted(tree)


def read_fields(process: int) -> list[str] | None:
    """What /proc says behind the program's name; None where it has ended meanwhile."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def measure_cpu_s() -> float:
    """Used so far by the tree, and by those of it that have ended and were waited for."""
    found = (read_fields(process) for process in list_tree())
    return sum(int(tick) for fields in found if fields for tick in fields[11:15]) / TICKS_PER_S


def measure_descendants_cpu_s() -> float:
    """The same without this process itself: where it plays a part that is not measured."""
    found = (read_fields(process) for process in list_tree() if process != os.getpid())
    return sum(int(tick) for fields in found if fields for tick in fields[11:15]) / TICKS_PER_S


def read_peak_kb() -> int:
    """Of this program alone: `getrusage` begins with what the process had that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def measure_memory_mb(root: int | None = None) -> float:
    """Of the tree, shared pages counted once."""
    total = 0
    for process in list_tree(root):
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024


@dataclass(slots=True)
class Peak:
    mb: float = 0.0


@contextmanager
def watch_memory() -> Iterator[Peak]:
    """The highest memory seen during the `with`."""
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_S):
            peak.mb = max(peak.mb, measure_memory_mb())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()

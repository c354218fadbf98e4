"""Ten minutes of a thousand events a second through everything: chain, follower, Spark, broker, three subscribers.

    python -m bench.soak        PROOFCAST_BENCH_SCALE=0.05 for half a minute, PROOFCAST_SOAK_RATE=200 for fewer a second

Events are published fifty to a transaction on anvil. A stream, a webhook and the SDK, which verifies each event, count
the topic's sequence: it has no gaps, so whatever is lost is seen.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from threading import Thread

from matplotlib.figure import Figure

from bench.processes import measure_memory_mb
from bench.report import RESULTS, Row, write_report
from bench.soak_bed import PATTERN, TOPICS, Publisher, open_chain
from bench.soak_reader import Tally

SCALE = float(os.environ.get("PROOFCAST_BENCH_SCALE", "1"))
DURATION_S = 600 * SCALE
EVENTS_PER_S = int(os.environ.get("PROOFCAST_SOAK_RATE", "1000"))
SETTLED_S = 60.0
"""After which memory should not grow any more; and how long a mean is taken over."""
GROWTH_PERCENT_MAX = 10
START_S_MAX, END_S_MAX = 300.0, 120.0
SAMPLE_S = 2.0
ANCHOR = "FireFly's published soak: 54.9 events/s, 0 incomplete"


@dataclass(slots=True)
class Part:
    """A process, and what it prints."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, pattern: str) -> str:
        wait_until(
            lambda: bool(re.search(pattern, self.log.read_text())) or self.process.poll() is not None, START_S_MAX
        )
        found = re.search(pattern, self.log.read_text())
        assert found, f"{self.name} ended:\n{self.log.read_text()[-2000:]}"
        return found[0]

    def verify_alive(self) -> None:
        assert self.process.poll() is None, f"{self.name} has ended:\n{self.log.read_text()[-2000:]}"

    def read_tally(self) -> Tally:
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
        return Tally(**json.loads(lines[-1])) if lines else Tally()


@dataclass(slots=True)
class Memory:
    """Of the broker and of the pipeline's processes together, over time."""

    samples: list[tuple[float, float, float]] = field(default_factory=list)
    """Seconds, MB, MB."""

    def compute_growth_percent(self, at: int) -> float | None:
        """From the minute after the first to the last one; None where the run was too short for that."""
        end = self.samples[-1][0]
        settled = [one[at] for one in self.samples if SETTLED_S <= one[0] < 2 * SETTLED_S]
        last = [one[at] for one in self.samples if one[0] > end - SETTLED_S]
        return 100 * (mean(last) / mean(settled) - 1) if end > 3 * SETTLED_S else None


@contextmanager
def run_part(folder: Path, name: str, command: Sequence[str]) -> Iterator[Part]:
    log = folder / f"{name}.log"
    with log.open("w") as output:
        process = subprocess.Popen([sys.executable, "-m", *command], stdout=output, stderr=output)
    try:
        yield Part(name, process, log)
    finally:
        process.terminate()
        process.wait()


def wait_until(is_done: Callable[[], bool], s_max: float) -> None:
    end = time.monotonic() + s_max
    while not is_done():
        if time.monotonic() > end:
            raise TimeoutError("what should happen does not")
        time.sleep(0.1)


@dataclass(slots=True)
class Soak:
    folder: Path
    publisher: Publisher
    pipeline: Part
    broker: Part
    subscribers: dict[str, Part]
    memory: Memory = field(default_factory=Memory)
    tail_s: float = 0.0
    """From the last publication until everybody had everything."""
    took_s: float = 0.0

    def run(self) -> None:
        publishing = Thread(target=self.publisher.run, args=(EVENTS_PER_S, DURATION_S))
        began = time.monotonic()
        publishing.start()
        while publishing.is_alive():
            self._verify_alive()
            self.memory.samples.append((time.monotonic() - began, *self._measure()))
            publishing.join(SAMPLE_S)
        self.took_s = time.monotonic() - began
        with suppress(TimeoutError):  # then the rows say what is missing
            wait_until(self._is_complete, END_S_MAX)
        self._verify_alive()
        self.tail_s = time.monotonic() - began - self.took_s

    def _verify_alive(self) -> None:
        try:
            for part in (self.pipeline, self.broker, *self.subscribers.values()):
                part.verify_alive()
        except AssertionError:
            self.publisher.stop()
            raise

    def _measure(self) -> tuple[float, float]:
        return measure_memory_mb(self.broker.process.pid), measure_memory_mb(self.pipeline.process.pid)

    def _is_complete(self) -> bool:
        return all(part.read_tally().received >= self.publisher.sent for part in self.subscribers.values())


@contextmanager
def open_soak(folder: Path) -> Iterator[Soak]:
    with ExitStack() as stack:
        publisher = stack.enter_context(open_chain(folder / "journal"))
        url, feed = publisher.playground.chain.url, folder / "feed"
        follow = ["proofcast.cli", "pipeline", "follow", "--source", url, "--feed", str(feed)]
        pipeline = stack.enter_context(run_part(folder, "pipeline", [*follow, "--tables", str(folder / "tables")]))
        pipeline.wait_for("following chain")
        serve = ["proofcast.cli", "broker", "serve", "--feed", str(feed), "--port", "0"]
        broker = stack.enter_context(run_part(folder, "broker", [*serve, "--allow-receiver", "127.0.0.1"]))
        address = broker.wait_for(r"http://[\d.]+:\d+")
        wait_until(lambda: is_ready(pipeline, address), START_S_MAX)
        where = [address, PATTERN]
        subscribers = {
            kind: stack.enter_context(run_part(folder, kind, ["bench.soak_reader", kind, *arguments]))
            for kind, arguments in (("sse", where), ("webhook", []), ("sdk", where))
        }
        subscribe_webhook(address, subscribers["webhook"].wait_for(r"http://[\d.]+:\d+/"))
        yield Soak(folder, publisher, pipeline, broker, subscribers)


def subscribe_webhook(broker: str, receiver: str) -> None:
    body = {"name": "soak", "transport": "webhook", "start": "oldest", "options": {"url": receiver}}
    request = urllib.request.Request(f"{broker}/api/v1/subscriptions", json.dumps(body).encode(), method="POST")
    try:
        urllib.request.urlopen(request).close()
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from error


def is_ready(pipeline: Part, broker: str) -> bool:
    """Has the broker the topics' names? Then Spark has handed over what was mined before."""
    pipeline.verify_alive()
    try:
        with urllib.request.urlopen(f"{broker}/api/v1/topics") as answer:
            return len(json.load(answer)["topics"]) == TOPICS
    except urllib.error.HTTPError:
        return False


def build_rows(soak: Soak) -> list[Row]:
    sent, rows = soak.publisher.sent, []
    rate = sent / max(soak.publisher.took_s, 1e-9)
    rows.append(Row("events published", round(rate), "/s", 0.99 * EVENTS_PER_S, "higher", ANCHOR))
    rows.append(Row("events published", sent, "", None, "higher", f"{DURATION_S:.0f} s, 50 to a transaction"))
    for kind, part in soak.subscribers.items():
        tally = part.read_tally()
        lost = sent - tally.received
        rows.append(Row(f"lost on the way to {kind}", lost, "events", 0, "lower", ANCHOR))
        rows.append(Row(f"came twice to {kind}", tally.repeated, "events", 0, "lower", "nothing failed meanwhile"))
    for at, name in ((1, "broker"), (2, "pipeline")):
        growth = soak.memory.compute_growth_percent(at)
        if growth is not None:
            anchor = "mean of the last minute against that of the second one"
            rows.append(
                Row(f"memory of the {name}, growth", round(growth, 1), "%", GROWTH_PERCENT_MAX, "lower", anchor)
            )
        highest = max(sample[at] for sample in soak.memory.samples)
        rows.append(Row(f"memory of the {name}, highest", round(highest), "MB", None, "lower", "shared pages once"))
    rows.append(Row("last publication until all have all", round(soak.tail_s, 1), "s", None, "lower", "blocks of 1 s"))
    return rows


def draw(memory: Memory) -> None:
    figure = Figure(figsize=(7, 2.8))
    axes = figure.subplots()
    for at, name in ((1, "broker"), (2, "pipeline with Spark")):
        axes.plot([sample[0] for sample in memory.samples], [sample[at] for sample in memory.samples], label=name)
    axes.set(xlabel="seconds", ylabel="memory, MB", ylim=(0, None))
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "soak.svg")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="proofcast-soak-") as folder, open_soak(Path(folder)) as soak:
        soak.run()
        rows = build_rows(soak)
    draw(soak.memory)
    return write_report("soak", rows)


if __name__ == "__main__":
    sys.exit(main())

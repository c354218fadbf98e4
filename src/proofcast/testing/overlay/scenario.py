"""Stories about peers in a text file, with what must come of them: played on simulated peers and on real hosts alike.

A line is a command; `#` begins a comment. Below `check` and `list` stand, after `----`, the lines they print. Peers are
numbered from 0 and written `3`, `0-9` or `0-4,7`.

| command | what happens |
|---|---|
| `peers N [setting=value ...]` | N peers more, which know each other well; settings as in `overlay/settings.py` |
| `join N` | N newcomers enter through the first peer that is there |
| `subscribe PEERS PREDICATE`, `unsubscribe PEERS PREDICATE` | each of them |
| `publish PEERS ATTRIBUTES` | each publishes one event |
| `group PEER PREDICATE`, `enter PEERS PEER PREDICATE` | open a multicast group; join it with the same predicate |
| `multicast PEER ATTRIBUTES` | publish to the peer's groups alone |
| `crash PEERS`, `restart PEERS` | without a word; with what was stored |
| `split PEERS \\| PEERS`, `heal` | a partition begins and ends |
| `wait SECONDS` | time passes |
| `check` | prints what was expected, delivered, missing, delivered twice, unexpected |
| `list` | prints of each event who got it |
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Protocol

from proofcast.errors import InvalidRequest, Reason
from proofcast.overlay.settings import Settings
from proofcast.routing.attributes import parse_attributes
from proofcast.routing.predicate import parse_predicate
from proofcast.testing.overlay.oracle import Oracle

OUTPUT_MARK = "----"
PEERS_MAX = 100_000


class Stage(Protocol):
    """Where a scenario is played."""

    oracle: Oracle

    def add_peers(self, count: int, settings: Settings) -> None: ...
    def add_newcomers(self, count: int) -> None: ...
    def subscribe(self, index: int, predicate: str) -> object: ...
    def unsubscribe(self, index: int, predicate: str) -> None: ...
    def publish(self, index: int, attributes: str) -> object: ...
    def publish_to_groups(self, index: int, attributes: str) -> object: ...
    def open_group(self, index: int, predicate: str) -> None: ...
    def enter_group(self, index: int, publisher: int, predicate: str) -> None: ...
    def crash(self, index: int) -> None: ...
    def restart(self, index: int) -> None: ...
    def split(self, *sides: list[int]) -> None: ...
    def heal(self) -> None: ...
    def wait(self, seconds: float) -> None: ...
    def get_present(self) -> set[int]: ...
    def get_peer_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Step:
    line: int
    command: str
    rest: str
    expected: tuple[str, ...] | None
    """Lines below `----`; None where the file shows none."""


def refuse(line: int, message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, f"line {line} of the scenario: {message}", hint=hint)


def parse_scenario(text: str) -> list[Step]:
    """Commands with the output shown below them."""
    steps: list[Step] = []
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        content = lines[place].split("#")[0].strip()
        place += 1
        if not content:
            continue
        command, _, rest = content.partition(" ")
        number, expected = place, None
        if command not in COMMANDS:
            raise refuse(number, f"`{command}` is no command", f"the commands are {', '.join(sorted(COMMANDS))}")
        if place < len(lines) and lines[place].strip() == OUTPUT_MARK:
            expected = tuple(take_output(lines, place + 1))
            place += 1 + len(expected)
        steps.append(Step(number, command, rest.strip(), expected))
    return steps


def take_output(lines: list[str], place: int) -> Iterator[str]:
    while place < len(lines) and lines[place].strip():
        yield lines[place].rstrip()
        place += 1


def parse_peers(line: int, text: str, count: int) -> list[int]:
    """`0-4,7` as numbers of peers that exist."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise refuse(line, f"`{text}` names no peers", "write e.g. `3`, `0-9` or `0-4,7`")
        found += range(int(first), int(last if dash else first) + 1)
    if not found or max(found) >= count:
        raise refuse(line, f"`{text}` goes beyond the `{count}` peers there are", "they are numbered from 0")
    return found


def parse_settings(line: int, words: list[str], settings: Settings) -> Settings:
    known = {item.name: type(getattr(settings, item.name)) for item in fields(Settings)}
    changes: dict[str, object] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in known:
            raise refuse(line, f"`{name}` is no setting", f"the settings are {', '.join(known)}")
        changes[name] = parse_setting(line, known[name], value)
    return replace(settings, **changes)  # type: ignore[arg-type]  # checked against the field's own type above


def parse_setting(line: int, kind: type, value: str) -> object:
    try:
        return {"yes": True, "no": False}[value] if kind is bool else kind(value)
    except (KeyError, ValueError):
        raise refuse(line, f"`{value}` is no value of that setting", "write a number, a word, `yes` or `no`") from None


class Play:
    """One run of a scenario; `transcript` is the file as it should read."""

    def __init__(self, stage: Stage, settings: Settings) -> None:
        self._stage = stage
        self._settings = settings

    def run(self, step: Step) -> list[str]:
        """Carry out one command and return what it prints."""
        return COMMANDS[step.command](self, step) or []

    def _parse_first(self, step: Step) -> tuple[list[int], str]:
        first, _, rest = step.rest.partition(" ")
        return parse_peers(step.line, first, self._stage.get_peer_count()), rest.strip()

    def add_peers(self, step: Step) -> None:
        count, *words = step.rest.split() or [""]
        self._stage.add_peers(self._parse_count(step, count), parse_settings(step.line, words, self._settings))

    def _parse_count(self, step: Step, text: str) -> int:
        if not text.isdecimal() or not 0 < int(text) <= PEERS_MAX:
            raise refuse(step.line, f"`{text}` is no number of peers", f"write one from 1 to {PEERS_MAX}")
        return int(text)

    def join(self, step: Step) -> None:
        self._stage.add_newcomers(self._parse_count(step, step.rest))

    def subscribe(self, step: Step) -> None:
        peers, predicate = self._parse_first(step)
        for index in peers:
            self._stage.subscribe(index, str(parse_predicate(predicate)))

    def unsubscribe(self, step: Step) -> None:
        peers, predicate = self._parse_first(step)
        for index in peers:
            self._stage.unsubscribe(index, str(parse_predicate(predicate)))

    def publish(self, step: Step) -> None:
        peers, attributes = self._parse_first(step)
        for index in peers:
            self._stage.publish(index, str(parse_attributes(attributes)))

    def multicast(self, step: Step) -> None:
        peers, attributes = self._parse_first(step)
        for index in peers:
            self._stage.publish_to_groups(index, str(parse_attributes(attributes)))

    def open_group(self, step: Step) -> None:
        (index, *_), predicate = self._parse_first(step)
        self._stage.open_group(index, str(parse_predicate(predicate)))

    def enter_group(self, step: Step) -> None:
        peers, rest = self._parse_first(step)
        publisher, _, predicate = rest.partition(" ")
        (owner, *_) = parse_peers(step.line, publisher, self._stage.get_peer_count())
        for index in peers:
            self._stage.enter_group(index, owner, str(parse_predicate(predicate)))

    def crash(self, step: Step) -> None:
        for index in self._parse_first(step)[0]:
            self._stage.crash(index)

    def restart(self, step: Step) -> None:
        for index in self._parse_first(step)[0]:
            self._stage.restart(index)

    def split(self, step: Step) -> None:
        count = self._stage.get_peer_count()
        self._stage.split(*(parse_peers(step.line, side.strip(), count) for side in step.rest.split("|")))

    def heal(self, step: Step) -> None:
        self._stage.heal()

    def wait(self, step: Step) -> None:
        try:
            self._stage.wait(float(step.rest))
        except ValueError:
            raise refuse(step.line, f"`{step.rest}` is no time", "write seconds, e.g. `wait 1.5`") from None

    def check(self, step: Step) -> list[str]:
        return [str(self._stage.oracle.judge(self._stage.get_present()))]

    def list_events(self, step: Step) -> list[str]:
        oracle = self._stage.oracle
        got: dict[object, list[int]] = {event_id: [] for event_id in oracle.publications}
        for delivery in oracle.deliveries:
            got[delivery.event_id].append(delivery.peer)
        names = {event_id: " ".join(map(str, sorted(peers))) or "nobody" for event_id, peers in got.items()}
        return [f"{one.publisher} {one.attributes} -> {names[one.event_id]}" for one in oracle.publications.values()]


Action = Callable[[Play, Step], list[str] | None]

COMMANDS: dict[str, Action] = {
    "peers": Play.add_peers,
    "join": Play.join,
    "subscribe": Play.subscribe,
    "unsubscribe": Play.unsubscribe,
    "publish": Play.publish,
    "multicast": Play.multicast,
    "group": Play.open_group,
    "enter": Play.enter_group,
    "crash": Play.crash,
    "restart": Play.restart,
    "split": Play.split,
    "heal": Play.heal,
    "wait": Play.wait,
    "check": Play.check,
    "list": Play.list_events,
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A command that printed something else than the file shows."""

    step: Step
    printed: tuple[str, ...]


def play(steps: list[Step], stage: Stage, settings: Settings) -> Iterator[tuple[Step, list[str]]]:
    """Each step with what it printed."""
    run = Play(stage, settings)
    for step in steps:
        yield step, run.run(step)


def find_differences(text: str, stage: Stage, settings: Settings) -> list[Difference]:
    return [
        Difference(step, tuple(printed))
        for step, printed in play(parse_scenario(text), stage, settings)
        if step.expected is not None and step.expected != tuple(printed)
    ]

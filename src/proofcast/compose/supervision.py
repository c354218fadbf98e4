"""When each process starts and ends, decided without touching one.

A component starts when the one before it says that it is ready. Ending goes the opposite way: the last one is asked to
end first, and the next one when it is gone. A component that does not end in time is killed.

A component that dies unasked is started again, at most `RESTARTS_MAX` times in `RESTARTS_S` seconds; what it kept in
the data folder is where it goes on. One that never was ready is not started again: its own last words say what to
change. Then everything ends, with those words as the reason.

      waiting -> starting -> ready -> ending -> ended
                    ^          |
                    +-- died --+
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from proofcast.compose.plan import Component

RESTARTS_MAX, RESTARTS_S = 3, 60.0
"""More often means that starting again does not help."""
END_S_MAX = 20.0
"""Spark finishes the batch it is in."""
LAST_WORDS = 2
"""Lines kept of what a component says: an error is a sentence and a hint."""


class State(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    ENDING = "ending"
    ENDED = "ended"


# --- what is to be done


@dataclass(frozen=True, slots=True)
class Start:
    component: Component


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the process to end."""

    name: str


@dataclass(frozen=True, slots=True)
class Kill:
    name: str


@dataclass(frozen=True, slots=True)
class Say:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class AllReady:
    """Everything works now, for the first time."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why everything ended though nobody wanted it to."""

    message: str
    hint: str
    """The component's own, where it gave one."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing runs any more."""

    failure: Failure | None
    """None where the user wanted it."""


Output = Start | Ask | Kill | Say | AllReady | Finish


@dataclass(slots=True)
class Member:
    component: Component
    state: State = State.WAITING
    was_ready: bool = False
    deadline: float | None = None
    died: deque[float] = field(default_factory=lambda: deque(maxlen=RESTARTS_MAX))
    """When it died, the latest times."""
    words: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_WORDS))


class Supervision:
    def __init__(self, plan: Sequence[Component]) -> None:
        self._members = {component.name: Member(component) for component in plan}
        self._is_ending = False
        self._failure: Failure | None = None

    def begin(self, now: float) -> list[Output]:
        return self._start_next(now)

    def hear(self, name: str, line: str, now: float) -> list[Output]:
        """A component has printed a line."""
        member = self._members[name]
        member.words.append(line)
        found = member.component.ready.search(line)
        if member.state is not State.STARTING or not found:
            return []
        member.state, member.deadline, is_first = State.READY, None, not member.was_ready
        member.was_ready = True
        return [Say(name, f"ready: {found.group()}"), *(self._start_next(now) if is_first else [])]

    def bury(self, name: str, code: int, now: float) -> list[Output]:
        """A component's process has ended."""
        member = self._members[name]
        if self._is_ending:
            member.state, member.deadline = State.ENDED, None
            return [Say(name, "ended"), *self._end_next(now)]
        if member.was_ready and not self._dies_too_often(member, now):
            return [Say(name, f"died with code {code}; it is started again"), self._start(member, now)]
        member.state, member.deadline = State.ENDED, None
        why = "again and again" if member.was_ready else "before it was ready"
        return self._give_up(member, f"the {name} ended {why}, with code `{code}`", now)

    def end(self, now: float) -> list[Output]:
        """The user wants it to end; wanting it twice changes nothing."""
        if self._is_ending:
            return []
        self._is_ending = True
        return self._end_next(now)

    def tick(self, now: float) -> list[Output]:
        """What time has decided."""
        late = [one for one in self._members.values() if one.deadline is not None and one.deadline <= now]
        return [output for member in late for output in self._give_no_more_time(member, now)]

    def deadline(self) -> float | None:
        return min((one.deadline for one in self._members.values() if one.deadline is not None), default=None)

    def get_states(self) -> dict[str, State]:
        return {name: member.state for name, member in self._members.items()}

    def _start_next(self, now: float) -> list[Output]:
        waiting = next((one for one in self._members.values() if one.state is State.WAITING), None)
        return [AllReady()] if waiting is None else [Say(waiting.component.name, "starting"), self._start(waiting, now)]

    def _start(self, member: Member, now: float) -> Start:
        member.state, member.deadline = State.STARTING, now + member.component.start_s_max
        member.words.clear()
        return Start(member.component)

    def _end_next(self, now: float) -> list[Output]:
        """Ask the last one that runs; nothing is left to do where none does."""
        running = [one for one in self._members.values() if one.state in (State.STARTING, State.READY, State.ENDING)]
        if not running:
            return [Finish(self._failure)]
        last = running[-1]
        if last.state is State.ENDING:
            return []
        last.state, last.deadline = State.ENDING, now + END_S_MAX
        return [Ask(last.component.name)]

    def _dies_too_often(self, member: Member, now: float) -> bool:
        member.died.append(now)
        return len(member.died) == RESTARTS_MAX and now - member.died[0] < RESTARTS_S

    def _give_up(self, member: Member, what: str, now: float) -> list[Output]:
        self._failure, self._is_ending = explain(what, member.words), True
        return self._end_next(now)

    def _give_no_more_time(self, member: Member, now: float) -> list[Output]:
        name, member.deadline = member.component.name, None
        if member.state is State.ENDING:
            return [Say(name, f"did not end within {END_S_MAX:g} s; it is killed"), Kill(name)]
        return self._give_up(member, f"the {name} was not ready after `{member.component.start_s_max:g}` seconds", now)


def explain(what: str, words: Iterable[str]) -> Failure:
    """Join what happened with what the component said last."""
    lines = [line for line in words if line.strip()]
    said = {line.partition(": ")[0]: line.partition(": ")[2] for line in lines}
    error = said.get("error") or (lines[-1].strip() if lines else "it said nothing")
    return Failure(f"{what}: {error}", said.get("hint", "its log says more"))

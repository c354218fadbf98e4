"""Server-sent events out of bytes, however they were cut."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from proofcast.errors import InvalidInput, Reason

LINE_LENGTH_MAX = 4 * 2**20
"""Bytes: an event of the largest payload a chain carries, several times over."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    name: str
    data: bytes
    id: str
    """Empty where this event has none; an earlier one's is not remembered."""


@dataclass(slots=True)
class EventParser:
    """Feed it bytes, take whole events; a rest waits for what comes next."""

    _rest: bytes = b""
    _name: str = "message"
    _id: str = ""
    _data: list[bytes] = field(default_factory=list)

    def receive(self, data: bytes) -> Iterator[ServerEvent]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_LENGTH_MAX:
            raise InvalidInput(
                Reason.MALFORMED,
                f"the stream has a line of more than `{LINE_LENGTH_MAX}` bytes",
                hint="check that the address is a broker's",
            )
        for line in lines:
            event = self._take(line.removesuffix(b"\r"))
            if event:
                yield event

    def _take(self, line: bytes) -> ServerEvent | None:
        if not line:
            event = ServerEvent(self._name, b"\n".join(self._data), self._id) if self._data else None
            self._name, self._id, self._data = "message", "", []
            return event
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value.decode(errors="replace")
        elif name == b"id":
            self._id = value.decode(errors="replace")
        return None

"""A node that says what it is told to say: silent, slow in the head, or wrong."""

from collections import deque
from collections.abc import Callable, Sequence

from proofcast.testing.chain.server import Answer, JsonValue, LoopbackServer, encode

Script = Sequence[Callable[[JsonValue], Answer]]


def result(value: JsonValue) -> Callable[[JsonValue], Answer]:
    """An honest answer to a single call."""
    return lambda request: encode({"jsonrpc": "2.0", "id": get_id(request), "result": value})


def error(code: int, message: str, data: JsonValue = None) -> Callable[[JsonValue], Answer]:
    """A refusal of a single call."""
    refusal: dict[str, JsonValue] = {"code": code, "message": message, "data": data}
    return lambda request: encode({"jsonrpc": "2.0", "id": get_id(request), "error": refusal})


def plainly(answer: Answer) -> Callable[[JsonValue], Answer]:
    """The same bytes whatever was asked."""
    return lambda request: answer


def get_id(request: JsonValue) -> JsonValue:
    assert isinstance(request, dict)
    return request["id"]


class ScriptedNode(LoopbackServer):
    """Answers one request after the other by its script, and remembers what it was asked."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.asked: list[JsonValue] = []
        self._script = deque(script)

    def answer(self, request: JsonValue) -> Answer:
        self.asked.append(request)
        return self._script.popleft()(request)

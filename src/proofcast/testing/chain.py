"""A node that says what it is told to say, over real HTTP: silent, slow in the head, or lying."""

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
"""JSON, parsed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; without a body the connection is closed in the middle of it."""

    body: bytes | None
    status: int = 200


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


def encode(value: JsonValue) -> Answer:
    return Answer(json.dumps(value).encode())


@dataclass(slots=True)
class ScriptedNode:
    """Answers one request after the other by its script, and remembers what it was asked."""

    script: Sequence[Callable[[JsonValue], Answer]]
    asked: list[JsonValue] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self._server
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), build_handler(deque(self.script), self.asked))
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server
        self._server.shutdown()
        self._server.server_close()


def build_handler(script: deque[Callable[[JsonValue], Answer]], asked: list[JsonValue]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that http.server looks for
            request: JsonValue = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(request)
            answer = script.popleft()(request)
            if answer.body is None:
                self.close_connection = True
                return
            self.send_response(answer.status)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 # its name in http.server
            """Nothing: what was asked is in `asked`."""

    return Handler

"""A loopback HTTP server for one function from request to answer."""

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
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


def encode(value: JsonValue) -> Answer:
    return Answer(json.dumps(value).encode())


class LoopbackServer:
    """Serves on a free port for the length of a `with`."""

    def __init__(self) -> None:
        self._server: ThreadingHTTPServer | None = None

    def answer(self, request: JsonValue) -> Answer:
        """What a subclass says to a request's JSON."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        assert self._server
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._server = Server(("127.0.0.1", 0), build_handler(self.answer))
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server
        self._server.shutdown()
        self._server.server_close()


class Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that was killed; a fault of our own is shown as ever."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type] # passed on as it came


def build_handler(answer: Callable[[JsonValue], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body leave at once, not when the other side has confirmed the head

        def do_POST(self) -> None:  # the name that http.server looks for
            request: JsonValue = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = answer(request)
            if said.body is None:
                self.close_connection = True
                return
            self.send_response(said.status)
            self.send_header("content-length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 # its name in http.server
            """Nothing: a test that wants to know what was asked looks at the node."""

    return Handler

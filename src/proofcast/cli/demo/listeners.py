"""The demonstration's services: each hears of events in its own way, in a thread that ends with the program."""

import base64
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from proofcast.client.io.http import Client
from proofcast.cloudevents import parse_structured
from proofcast.errors import Reason, Unavailable
from proofcast.event import Event, Step
from proofcast.webhook import Signed, verify

WAIT_S_MAX = 30.0
"""For something that takes a fraction of a second on an idle machine."""
STREAM = "/api/v1/events/stream"


@dataclass(frozen=True, slots=True)
class Heard:
    event: Event
    at: float


class Listener:
    """One service; `listen` yields what it is told, for ever."""

    def __init__(self, name: str, listen: Callable[[], Iterator[Event]]) -> None:
        self.name = name
        self._heard: queue.Queue[Heard | Exception] = queue.Queue()
        threading.Thread(target=self._run, args=(listen,), daemon=True).start()

    def _run(self, listen: Callable[[], Iterator[Event]]) -> None:
        try:
            for event in listen():
                self._heard.put(Heard(event, time.monotonic()))
        except Exception as error:  # shown by whoever waits for an event
            self._heard.put(error)

    def wait(self) -> Heard:
        """The next event it was told of."""
        try:
            heard = self._heard.get(timeout=WAIT_S_MAX)
        except queue.Empty:
            raise Unavailable(
                Reason.NOT_YET,
                f"the {self.name} subscriber heard nothing for `{WAIT_S_MAX:g}` seconds",
                hint="try again on a calmer machine",
            ) from None
        if isinstance(heard, Exception):
            raise heard
        return heard


def listen_by_sse(broker: str, topic: str) -> Iterator[Event]:
    """As any program would that knows HTTP and nothing of us."""
    query = {"topic": topic, "start": "oldest"}
    with httpx.stream("GET", broker + STREAM, params=query, timeout=None, trust_env=False) as response:
        name = ""
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            name = value if field == "event" else name
            if field == "data" and name in (Step.APPLY, Step.UNDO):
                yield parse_structured(value.encode()).event


def listen_by_sdk(broker: str, topic: str) -> Iterator[Event]:
    """Every event is checked by the client itself."""
    with Client(broker) as client:
        yield from client.subscribe(topic, start="oldest")


def listen_by_webhook(broker: str, topic: str) -> Iterator[Event]:
    """A receiver of our own, to which the broker posts; whatever is not signed with our secret is refused."""
    taken: queue.Queue[Event] = queue.Queue()
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    server = ThreadingHTTPServer(("127.0.0.1", 0), build_receiver(secret, taken))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    subscription = {
        "name": "demo",
        "filter": {"topic": topic},
        "start": "oldest",
        "transport": "webhook",
        "options": {"url": f"http://127.0.0.1:{server.server_port}/"},
        "secrets": [secret],
    }
    with Client(broker) as client:
        client.ask("POST", "/api/v1/subscriptions", body=subscription)
    while True:
        yield taken.get()


def build_receiver(secret: str, taken: queue.Queue[Event]) -> type[BaseHTTPRequestHandler]:
    class Receiver(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # the name that http.server looks for
            body = self.rfile.read(int(self.headers["content-length"]))
            names = ("webhook-id", "webhook-timestamp", "webhook-signature")
            verify([secret], Signed(*(self.headers.get(name, "") for name in names)), body, int(time.time()))
            taken.put(parse_structured(body).event)
            self.send_response(204)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 # its name in http.server
            """Nothing: the story tells what arrives."""

    return Receiver

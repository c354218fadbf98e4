"""One subscriber of the soak, a process of its own; it prints twice a second what it has.

python -m bench.soak_reader sse|sdk BROKER TOPIC
python -m bench.soak_reader webhook             prints its address first
"""

import json
import sys
import threading
import urllib.request
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from proofcast.client.io.http import Client

REPORT_S = 0.5


@dataclass(slots=True)
class Tally:
    """Sequences of a topic, which begin at 1 and have no gaps."""

    held: int = 0
    """The newest sequence up to which everything came."""
    missed: int = 0
    repeated: int = 0

    def note(self, sequence: int) -> None:
        if sequence <= self.held:
            self.repeated += 1
            return
        self.missed += sequence - self.held - 1
        self.held = sequence


def report_always(tally: Tally) -> None:
    ended = threading.Event()
    while not ended.wait(REPORT_S):
        print(json.dumps(asdict(tally)), flush=True)


def read_stream(tally: Tally, broker: str, topic: str) -> None:
    with urllib.request.urlopen(f"{broker}/api/v1/events/stream?start=oldest&topic={topic}") as stream:
        for line in stream:
            if line.startswith(b"data: ") and b'"sequence"' in line:
                tally.note(int(json.loads(line[6:])["sequence"]))


def read_verified(tally: Tally, broker: str, topic: str) -> None:
    with Client(broker) as client:
        for event in client.subscribe(topic, start="oldest"):
            tally.note(event.sequence)


def receive(tally: Tally) -> None:
    class Receiver(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            tally.note(int(json.loads(body)["sequence"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, form: str, *values: object) -> None:
            """Nothing: the tally is the report."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    print(f"http://127.0.0.1:{server.server_address[1]}/", flush=True)
    server.serve_forever()


def main(kind: str, *arguments: str) -> None:
    tally = Tally()
    threading.Thread(target=report_always, args=(tally,), daemon=True).start()
    {"sse": read_stream, "sdk": read_verified, "webhook": receive}[kind](tally, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""One subscriber of the soak, a process of its own; it prints twice a second what it has.

python -m bench.soak_reader sse|sdk BROKER TOPIC
python -m bench.soak_reader webhook             prints its address first
"""

import asyncio
import json
import re
import sys
import threading
import urllib.request
from dataclasses import dataclass, field

from proofcast.client.io.http import Client

REPORT_S = 0.5
REQUEST = re.compile(rb"POST .*?\r\ncontent-length: (\d+)(?=\r\n).*?\r\n\r\n", re.DOTALL | re.IGNORECASE)


@dataclass(slots=True)
class Tally:
    """Sequences of topics, each of which begins at 1 and has no gaps."""

    received: int = 0
    """Events, each counted once."""
    missed: int = 0
    repeated: int = 0
    _newest: dict[str, int] = field(default_factory=dict)
    """By topic."""

    def note(self, topic: str, sequence: int) -> None:
        newest = self._newest.get(topic, 0)
        if sequence <= newest:
            self.repeated += 1
            return
        self.received += 1
        self.missed += sequence - newest - 1
        self._newest[topic] = sequence

    def describe(self) -> dict[str, int]:
        return {"received": self.received, "missed": self.missed, "repeated": self.repeated}


def report_always(tally: Tally) -> None:
    ended = threading.Event()
    while not ended.wait(REPORT_S):
        print(json.dumps(tally.describe()), flush=True)


def read_stream(tally: Tally, broker: str, topic: str) -> None:
    with urllib.request.urlopen(f"{broker}/api/v1/events/stream?start=oldest&topic={topic}") as stream:
        for line in stream:
            if line.startswith(b"data: ") and b'"sequence"' in line:
                note_event(tally, line[6:])


def note_event(tally: Tally, data: bytes) -> None:
    found = json.loads(data)
    tally.note(found["topic"], int(found["sequence"]))


def read_verified(tally: Tally, broker: str, topic: str) -> None:
    with Client(broker) as client:
        for event in client.subscribe(topic, start="oldest"):
            tally.note(event.topic.hex(), event.sequence)


class Receiver(asyncio.Protocol):
    """Takes one request after the other; no more of HTTP than a well-behaved sender needs, so that it costs little."""

    def __init__(self, tally: Tally) -> None:
        self._tally, self._rest = tally, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while found := REQUEST.match(self._rest):
            end = found.end() + int(found[1])
            if len(self._rest) < end:
                return
            note_event(self._tally, self._rest[found.end() : end])
            self._rest = self._rest[end:]
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def receive(tally: Tally) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Receiver(tally), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
    await server.serve_forever()


def run_receiver(tally: Tally) -> None:
    asyncio.run(receive(tally))


def main(kind: str, *arguments: str) -> None:
    tally = Tally()
    threading.Thread(target=report_always, args=(tally,), daemon=True).start()
    {"sse": read_stream, "sdk": read_verified, "webhook": lambda one: asyncio.run(receive(one))}[kind](
        tally, *arguments
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

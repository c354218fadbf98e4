"""The server's processes and the links between them.

    sequencer   owns the log: collects what the shards accepted, appends a frame, tells everybody where it stands
    attestor    owns the closes: hashes a durable frame, closes its epoch durably, signs it, tells the shards
    shard 1..n  own the clients whose key digest is theirs: doors, outboxes, inboxes

Every two of them that speak share a pair of sockets made before they start, so there is nothing to look up and nothing
to connect to. When one ends all end: a server with a part missing must not go on promising.
"""

import asyncio
import ctypes
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import cast

import uvloop

from proofcast.errors import ProofcastError
from proofcast.groups.io.log import SEGMENT_BYTES_MAX
from proofcast.groups.link import HEADER, Assembly, Message

LINK_BYTES_MAX = 1 << 28
"""A frame or the bundles of an epoch; both come from ourselves."""
PORT_BYTES = 2
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of glibc's `mallopt`."""
KEPT_BYTES = 1 << 28
MAPPED_BYTES = 1 << 25
"""The largest that glibc allows."""
Receive = Callable[[Message], None]


class LinkKind(IntEnum):
    ENTRIES = 1
    """Shard to sequencer: number of messages; entries."""
    FRAME = 2
    """Sequencer to all: epoch; where its body stands in the log, durable."""
    CLOSED = 3
    """Attestor to shard: epoch; what its clients get of it."""
    DONE = 4
    """All to sequencer: epoch, whose frame need not be in the log on our account."""
    READY = 5
    """Child to sequencer: port of a shard, else 0. Sequencer to shards: the ports of all."""
    FULL = 6
    """Shard to shard through the sequencer: whether; device."""


@dataclass(frozen=True, slots=True)
class Options:
    """What every process of one server is told."""

    folder: str
    shards: int = 1
    host: str = "127.0.0.1"
    port: int = 0
    """Of the first shard; the others follow. 0 for any free ones."""
    public: str = ""
    """Where devices reach the shards, where that is not host and port: an address with `{shard}` in it."""
    epoch_s: float = 0.02
    idle_s: float = 1.0
    """How long a server without messages waits before it closes an empty epoch."""
    witnesses: tuple[str, ...] = ()
    """Keys, in hexadecimal, whose cosignatures it takes."""
    segment_bytes_max: int = SEGMENT_BYTES_MAX
    """After eight segments the log is replaced by a snapshot."""

    def get_urls(self, ports: list[int]) -> list[str]:
        """Of all shards, as devices see them."""
        if self.public:
            return [self.public.replace("{shard}", str(number)) for number in range(len(ports))]
        return [f"http://{self.host}:{port}" for port in ports]


class Link(asyncio.BufferedProtocol):
    """One end of a pair of sockets; what comes is received into the place where it stays."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.assembly = Assembly(LINK_BYTES_MAX)
        self.closed = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.assembly.get_room()

    def buffer_updated(self, nbytes: int) -> None:
        message = self.assembly.take(nbytes)
        if message is not None:
            self.receive(message)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def send(self, kind: int, number: int = 0, body: bytes = b"") -> None:
        self.transport.writelines([HEADER.pack(len(body), kind, number), body])


async def open_link(end: socket.socket, receive: Receive) -> Link:
    end.setblocking(False)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        end.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
    _, link = await asyncio.get_running_loop().create_connection(lambda: Link(receive), sock=end)
    return link


def start_process(
    module: str, options: Options, ends: dict[str, socket.socket], **facts: int
) -> subprocess.Popen[bytes]:
    """Run a module with its ends of the links; it finds their descriptors by name."""
    descriptors = {name: end.fileno() for name, end in ends.items()}
    request = json.dumps({"options": asdict(options), "links": descriptors, "facts": facts})
    child = subprocess.Popen([sys.executable, "-m", module, request], pass_fds=list(descriptors.values()))
    for end in ends.values():
        end.close()
    return child


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a child process was started with."""

    options: Options
    links: dict[str, socket.socket]
    facts: dict[str, int]


def keep_memory() -> None:
    """Have freed memory kept for the next frame: to return and fault it in again costs as much as the copying."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        library.mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


def run_child(work: Callable[[Assignment], Coroutine[None, None, None]]) -> None:
    """The body of a child process: an error is told in one sentence, as everywhere."""
    keep_memory()
    try:
        uvloop.run(work(parse_assignment(sys.argv[1])))
    except ProofcastError as error:
        sys.stderr.write(f"error: {error}\nhint: {error.hint}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(0)


def parse_assignment(request: str) -> Assignment:
    fields = json.loads(request)
    links = {name: socket.socket(fileno=descriptor) for name, descriptor in fields["links"].items()}
    return Assignment(Options(**fields["options"]), links, fields["facts"])

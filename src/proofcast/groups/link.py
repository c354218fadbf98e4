"""Messages on a stream of bytes, between a device and the server and between the server's own processes.

message = length u32 | kind u8 | body          length of the body alone
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from proofcast.errors import InvalidInput, Reason
from proofcast.groups.wire import WireReader, refuse

HEADER = struct.Struct(">IB")
LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Message:
    kind: int
    body: bytes


def encode_message(kind: int, body: bytes) -> bytes:
    return HEADER.pack(len(body), kind) + body


class MessageReader:
    """Cuts a stream into messages; one that is longer than allowed is refused before it is kept."""

    def __init__(self, body_bytes_max: int) -> None:
        self.body_bytes_max = body_bytes_max
        self.buffer = bytearray()

    def receive(self, data: bytes) -> Iterator[Message]:
        """The messages that are whole now."""
        self.buffer += data
        offset, messages = 0, []
        with memoryview(self.buffer) as view:
            while len(view) - offset >= HEADER.size:
                length, kind = HEADER.unpack_from(view, offset)
                if length > self.body_bytes_max:
                    raise refuse_length(length, self.body_bytes_max)
                begin, end = offset + HEADER.size, offset + HEADER.size + length
                if end > len(view):
                    break
                messages.append(Message(kind, bytes(view[begin:end])))
                offset = end
        del self.buffer[:offset]
        return iter(messages)


def refuse_length(length: int, length_max: int) -> InvalidInput:
    message = f"a message of `{length}` bytes is longer than the `{length_max}` allowed"
    return InvalidInput(Reason.MALFORMED, message, hint="send fewer series at once")


def encode_list(items: list[bytes]) -> bytes:
    return b"".join(part for item in items for part in (LENGTH.pack(len(item)), item))


def parse_list(data: bytes) -> list[bytes]:
    """The items of a list from outside; there must be one at least."""
    reader, items = WireReader(data, "the list"), []
    while reader.at < len(data):
        items.append(reader.take(reader.number(LENGTH.size)))
    if not items:
        raise refuse("the list is empty")
    return items

"""Messages between the server's own processes, and lists of byte strings.

message = length u32 | kind u8 | number u64 | body          length of the body alone
list    = any number of (length u32 | item)
"""

import struct
from dataclasses import dataclass

from proofcast.errors import InvalidInput, Reason
from proofcast.groups.wire import refuse

HEADER = struct.Struct(">IBQ")
LENGTH = struct.Struct(">I")
ROOM_BYTES = 1 << 16
"""Kept for messages that come; grows to the largest one."""


@dataclass(frozen=True, slots=True)
class Message:
    kind: int
    number: int
    """An epoch, or how many; what it means follows from the kind."""
    body: bytes


def encode_message(message: Message) -> bytes:
    return HEADER.pack(len(message.body), message.kind, message.number) + message.body


class Assembly:
    """Puts messages together from what comes; one that is longer than allowed is refused before it is there.

    Whoever receives writes into `get_room`, which never reaches beyond the message that is being received, and says
    with `take` how much it wrote.
    """

    def __init__(self, body_bytes_max: int) -> None:
        self.body_bytes_max = body_bytes_max
        self.room = memoryview(bytearray(ROOM_BYTES))
        self.at = 0
        self.wanted = HEADER.size
        self.header: tuple[int, int, int] | None = None

    def get_room(self) -> memoryview:
        return self.room[self.at : self.wanted]

    def take(self, size: int) -> Message | None:
        """The message, if it is whole now."""
        self.at += size
        if self.at == self.wanted and self.header is None:
            self.begin_body()
        if self.at < self.wanted or self.header is None:
            return None
        length, kind, number = self.header
        message = Message(kind, number, bytes(self.room[:length]))
        self.at, self.wanted, self.header = 0, HEADER.size, None
        return message

    def begin_body(self) -> None:
        self.header = HEADER.unpack_from(self.room)
        length = self.header[0]
        if length > self.body_bytes_max:
            raise refuse_length(length, self.body_bytes_max)
        if length > len(self.room):
            self.room = memoryview(bytearray(length))
        self.at, self.wanted = 0, length


def refuse_length(length: int, length_max: int) -> InvalidInput:
    message = f"a message of `{length}` bytes is longer than the `{length_max}` allowed"
    return InvalidInput(Reason.MALFORMED, message, hint="send fewer series at once")


def encode_list(items: list[bytes]) -> bytes:
    return b"".join(part for item in items for part in (LENGTH.pack(len(item)), item))


def parse_list(data: bytes) -> list[bytes]:
    """The items of a list from outside; there must be one at least."""
    items, at = [], 0
    while at < len(data):
        begin = at + LENGTH.size
        at = begin + int.from_bytes(data[at:begin], "big")
        items.append(data[begin:at])
    if at > len(data):
        raise refuse(f"the list ends after `{len(data)}` bytes, inside a field")
    if not items:
        raise refuse("the list is empty")
    return items

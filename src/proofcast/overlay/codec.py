"""Messages as bytes: a CBOR array `[tag, field, ...]`, the tag being the message's place in `messages.Message`.

Records inside a message are arrays of their fields in order; predicates and attributes are their canonical text; an
absent field is null. A frame on a stream is an unsigned varint with the length, then the message. The codecs are made
from the annotations of the dataclasses, so that a message is described in one place.

What arrives is hostile: a frame has a largest size, every field its type, every number its range, and anything else is
refused with `InvalidInput` before a protocol sees it.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from types import NoneType, UnionType
from typing import NamedTuple, cast, get_args, get_origin, get_type_hints

import cbor2

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.overlay.identity import KEY_BITS
from proofcast.overlay.messages import Message
from proofcast.overlay.records import Event, format_text
from proofcast.overlay.settings import FRAME_BYTES_MAX
from proofcast.routing.attributes import EventAttributes, parse_attributes
from proofcast.routing.predicate import Predicate, parse_predicate

LENGTH_BYTES_MAX = 3
"""Bytes of a varint up to `FRAME_BYTES_MAX`."""
SCALARS = (int, bytes, str, bool)
NUMBER_MAX = (1 << KEY_BITS) - 1

Convert = Callable[[object], object]


class Codec(NamedTuple):
    encode: Convert
    parse: Convert


def refuse(message: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, message, hint="the peer speaks another version or lies: disconnect it")


# --- one codec for each kind of field


def keep(value: object) -> object:
    return value


def parse_scalar(kind: type, value: object) -> object:
    if type(value) is not kind:
        raise refuse(f"a `{type(value).__name__}` stands where a `{kind.__name__}` belongs")
    return value


def parse_number(value: object) -> object:
    if type(value) is not int:
        raise refuse(f"a `{type(value).__name__}` stands where a `int` belongs")
    if not 0 <= value <= NUMBER_MAX:
        raise refuse(f"a number of `{value.bit_length()}` bits is out of range")
    return value


def encode_text(value: object) -> object:
    assert isinstance(value, Predicate | EventAttributes)
    return format_text(value)


@lru_cache(maxsize=1 << 14)
def parse_text(parse: Callable[[str], object], text: str) -> object:
    try:
        return parse(text)
    except InvalidRequest as error:
        raise refuse(str(error)) from None


def parse_content(parse: Callable[[str], object], value: object) -> object:
    if not isinstance(value, str):
        raise refuse(f"a `{type(value).__name__}` stands where a text belongs")
    return parse_text(parse, value)


def encode_list(codec: Codec, value: object) -> object:
    return [codec.encode(item) for item in cast(tuple[object, ...], value)]


def parse_list(codec: Codec, value: object) -> object:
    return tuple(codec.parse(item) for item in verify_array(value))


def verify_array(value: object) -> list[object]:
    if not isinstance(value, list):
        raise refuse(f"a `{type(value).__name__}` stands where an array belongs")
    return value


def encode_optional(codec: Codec, value: object) -> object:
    return None if value is None else codec.encode(value)


def parse_optional(codec: Codec, value: object) -> object:
    return None if value is None else codec.parse(value)


def encode_record(names: list[str], changed: list[tuple[int, Convert]], value: object) -> object:
    """The fields as they are, but for those that have another form outside."""
    items = [getattr(value, name) for name in names]
    for place, encode in changed:
        items[place] = encode(items[place])
    return items


def parse_record(kind: type, parsers: list[Convert], value: object) -> object:
    items = verify_array(value)
    if len(items) != len(parsers):
        raise refuse(f"a record has `{len(items)}` fields instead of `{len(parsers)}`")
    record: object = kind(*[parse(item) for parse, item in zip(parsers, items, strict=True)])
    return record


def make_codec(kind: object) -> Codec:
    if kind is int:
        return Codec(keep, parse_number)
    if kind in SCALARS:
        return Codec(keep, partial(parse_scalar, cast(type, kind)))
    if kind is Predicate:
        return Codec(encode_text, partial(parse_content, parse_predicate))
    if kind is EventAttributes:
        return Codec(encode_text, partial(parse_content, parse_attributes))
    if isinstance(kind, UnionType):
        (inner,) = (make_codec(option) for option in get_args(kind) if option is not NoneType)
        return Codec(partial(encode_optional, inner), partial(parse_optional, inner))
    if get_origin(kind) is tuple:
        inner = make_codec(get_args(kind)[0])
        return Codec(partial(encode_list, inner), partial(parse_list, inner))
    return make_record_codec(cast(type, kind))


@lru_cache
def make_record_codec(kind: type) -> Codec:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind) if field.init] if is_dataclass(kind) else list(hints)
    codecs = [make_codec(hints[name]) for name in names]
    changed = [(place, codec.encode) for place, codec in enumerate(codecs) if codec.encode is not keep]
    parsers = [codec.parse for codec in codecs]
    return Codec(partial(encode_record, names, changed), partial(parse_record, kind, parsers))


# --- messages and frames

KINDS = get_args(Message)
CODECS = [make_record_codec(kind) for kind in KINDS]
TAGS = {kind: tag for tag, kind in enumerate(KINDS)}


def encode_message(message: Message) -> bytes:
    tag = TAGS[type(message)]
    return cbor2.dumps([tag, *cast(list[object], CODECS[tag].encode(message))])


def parse_message(data: bytes) -> Message:
    if len(data) > FRAME_BYTES_MAX:
        raise refuse(f"a message has `{len(data)}` bytes, more than `{FRAME_BYTES_MAX}`")
    try:
        tag, *items = verify_array(cbor2.loads(data))
    except (cbor2.CBORError, ValueError, RecursionError, OverflowError, MemoryError):
        raise refuse("a message is no array of CBOR") from None
    if type(tag) is not int or not 0 <= tag < len(CODECS):
        raise refuse(f"`{tag!r:.40}` is no kind of message")
    return cast(Message, CODECS[tag].parse(items))


def encode_event(event: Event) -> bytes:
    return cbor2.dumps(make_record_codec(Event).encode(event))


def parse_event(data: bytes) -> Event:
    """Of a store of our own, or of whoever says that it is one: whether it is signed is another question."""
    try:
        return cast(Event, make_record_codec(Event).parse(cbor2.loads(data)))
    except (cbor2.CBORError, ValueError, RecursionError, OverflowError, MemoryError):
        raise refuse("an event is no array of CBOR") from None


def encode_frame(message: Message) -> bytes:
    body = encode_message(message)
    return encode_varint(len(body)) + body


def encode_varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


class FrameReader:
    """Cuts a stream of bytes into messages; holds at most one unfinished frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        self._buffer += data
        messages = []
        while (frame := self._take_frame()) is not None:
            messages.append(parse_message(frame))
        return messages

    def _take_frame(self) -> bytes | None:
        length = 0
        for place, byte in enumerate(self._buffer[:LENGTH_BYTES_MAX]):
            length |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return self._take(place + 1, length)
        if len(self._buffer) >= LENGTH_BYTES_MAX:
            raise refuse(f"a frame is longer than `{FRAME_BYTES_MAX}` bytes")
        return None

    def _take(self, start: int, length: int) -> bytes | None:
        if length > FRAME_BYTES_MAX:
            raise refuse(f"a frame of `{length}` bytes is longer than `{FRAME_BYTES_MAX}`")
        if len(self._buffer) < start + length:
            return None
        frame = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        return frame

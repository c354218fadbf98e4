"""Events by their ABI: what a log's topics and data say.

The first topic is the hash of the event's signature (unless it is anonymous), each further one an indexed parameter.
An indexed parameter of a type longer than a word, or of no fixed length, is there as its hash alone, and is given so.
The other parameters are in the data. Addresses are 20 bytes, integers have the full range of their type.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from eth_abi.codec import ABICodec
from eth_abi.decoding import AddressDecoder, StringDecoder
from eth_abi.encoding import AddressEncoder, TextStringEncoder
from eth_abi.exceptions import ABITypeError, DecodingError, ParseError
from eth_abi.grammar import TupleType, parse
from eth_abi.registry import ABIRegistry, registry

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.ethereum.canonical import decode_canonical
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import Log

Value: TypeAlias = "bool | int | bytes | str | Decimal | tuple[Value, ...]"

INDEXED_MAX = 3
"""Topics besides the signature's; an anonymous event has one more."""


class BytesAddressDecoder(AddressDecoder):
    """An address as its 20 bytes."""

    decoder_fn = staticmethod(bytes)  # type: ignore[assignment] # the library types it by what its own decoder returns


class LenientStringDecoder(StringDecoder):
    """Text as the chain has it: contracts do not check that it is UTF-8, so a wrong byte shows as `\\xff`."""

    def __init__(self) -> None:
        super().__init__("backslashreplace")  # type: ignore[no-untyped-call]


def build_codec() -> ABICodec:
    types: ABIRegistry = registry.copy()  # type: ignore[no-untyped-call]
    types.unregister("address")
    types.register("address", AddressEncoder, BytesAddressDecoder, label="address")
    types.unregister("string")
    types.register("string", TextStringEncoder, LenientStringDecoder, label="string")
    return ABICodec(types)


CODEC = build_codec()


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str
    """Canonical; a struct is written by its parts: `(uint256,bytes)`."""
    is_indexed: bool

    @property
    def is_hashed(self) -> bool:
        """Is it, where indexed, there as its hash alone?"""
        return is_longer_than_a_word(self.type)


@lru_cache(maxsize=1024)
def is_longer_than_a_word(name: str) -> bool:
    """Or of no fixed length."""
    parsed = parse(name)
    return parsed.is_dynamic or parsed.is_array or isinstance(parsed, TupleType)


@dataclass(frozen=True, slots=True)
class EventAbi:
    name: str
    parameters: tuple[Parameter, ...]
    is_anonymous: bool = False

    @property
    def signature(self) -> str:
        return f"{self.name}({','.join(parameter.type for parameter in self.parameters)})"

    @property
    def topic0(self) -> bytes | None:
        """The first topic of every such log; None where the event is anonymous."""
        return None if self.is_anonymous else compute_topic(self.signature)

    def matches(self, log: Log) -> bool:
        """Has the log this event's first topic and number of topics? ERC-20 and ERC-721 differ in the latter alone."""
        topic0 = self.topic0
        return len(log.topics) == self.topic_count and (topic0 is None or log.topics[0] == topic0)

    @property
    def topic_count(self) -> int:
        return sum(parameter.is_indexed for parameter in self.parameters) + (not self.is_anonymous)


@lru_cache(maxsize=1024)
def compute_topic(signature: str) -> bytes:
    return keccak256(signature.encode())


# --- decoding


def decode_log(abi: EventAbi, log: Log) -> dict[str, Value]:
    """The parameters of a log by their names, in their order."""
    if not abi.matches(log):
        raise InvalidInput(
            Reason.MALFORMED,
            f"a log with `{len(log.topics)}` topics is no `{abi.signature}`, which has `{abi.topic_count}`",
            hint="decode it by the ABI of the contract that emitted it",
        )
    topics = iter(log.topics if abi.is_anonymous else log.topics[1:])
    plain = iter(decode_data(abi, log.data))
    return {
        parameter.name: decode_topic(abi, parameter, next(topics)) if parameter.is_indexed else next(plain)
        for parameter in abi.parameters
    }


def decode_topic(abi: EventAbi, parameter: Parameter, topic: bytes) -> Value:
    return topic if parameter.is_hashed else decode_values(abi, (parameter.type,), topic)[0]


def decode_data(abi: EventAbi, data: bytes) -> tuple[Value, ...]:
    return decode_values(abi, tuple(parameter.type for parameter in abi.parameters if not parameter.is_indexed), data)


def decode_values(abi: EventAbi, types: tuple[str, ...], data: bytes) -> tuple[Value, ...]:
    plain = decode_canonical(types, data)
    if plain is not None:
        return plain
    try:
        # Not strict: old compilers did not pad a byte string at the end of the data.
        values: tuple[Value, ...] = CODEC.decode(types, data, strict=False)
    except (DecodingError, OverflowError) as error:
        raise InvalidInput(
            Reason.MALFORMED,
            f"`{len(data)}` bytes of an event `{abi.signature}` do not decode as `({','.join(types)})`",
            hint="decode it by the ABI of the contract that emitted it",
        ) from error
    return values


# --- parsing


def format_value(value: Value) -> str:
    """As a person reads it: decimal numbers, 0x and hexadecimal digits, lists as JSON."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, tuple):
        return json.dumps(list_texts(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def list_texts(values: Sequence[Value]) -> list[object]:
    return [list_texts(value) if isinstance(value, tuple) else format_value(value) for value in values]


def parse_abi(entries: Sequence[Mapping[str, object]]) -> tuple[EventAbi, ...]:
    """The events of a contract's JSON ABI; functions and errors are passed over."""
    return tuple(parse_event(entry) for entry in entries if entry.get("type") == "event")


def parse_event(entry: Mapping[str, object]) -> EventAbi:
    name, anonymous = entry.get("name"), entry.get("anonymous", False)
    if not isinstance(name, str) or not isinstance(anonymous, bool):
        raise refuse(f"an event of the ABI has the name `{name}`")
    parameters = tuple(parse_parameter(name, at, part) for at, part in enumerate(get_parts(name, entry, "inputs")))
    abi = EventAbi(name, parameters, anonymous)
    if len({parameter.name for parameter in parameters}) < len(parameters):
        raise refuse(f"two parameters of the event `{abi.signature}` have one name")
    if abi.topic_count > INDEXED_MAX + 1:
        raise refuse(f"the event `{abi.signature}` has more than `{INDEXED_MAX}` indexed parameters")
    return abi


def parse_parameter(event: str, at: int, part: Mapping[str, object]) -> Parameter:
    """A parameter without a name is called by its place: `arg0`."""
    name = part.get("name")
    return Parameter(
        name if isinstance(name, str) and name else f"arg{at}", parse_type(event, part), part.get("indexed") is True
    )


def parse_type(event: str, part: Mapping[str, object]) -> str:
    """A struct's type is `tuple`, perhaps with brackets behind it, and its parts are components."""
    text = part.get("type")
    if isinstance(text, str) and text.startswith("tuple"):
        inner = ",".join(parse_type(event, component) for component in get_parts(event, part, "components"))
        text = f"({inner}){text.removeprefix('tuple')}"
    try:
        parse(text).validate()
    except (ParseError, ABITypeError, TypeError):
        raise refuse(f"the event `{event}` has a parameter of the type `{text}`") from None
    assert isinstance(text, str), text
    return text


def get_parts(event: str, entry: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    parts = entry.get(key)
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise refuse(f"the event `{event}` has no list of `{key}`")
    return parts


def refuse(message: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint="give the JSON ABI that the compiler wrote")

"""What a user writes on the command line as the numbers and bytes inside: amounts, addresses, topics, keys."""

import re
from decimal import Decimal

from click.types import FuncParamType
from eth_hash.auto import keccak
from eth_utils.address import is_checksum_address

from proofcast.errors import InvalidRequest, Reason
from proofcast.onchain.topics import compute_topic

WEI_PER_UNIT = {"wei": 1, "mwei": 10**6, "gwei": 10**9, "ether": 10**18}
AMOUNT_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*(wei|mwei|gwei|ether)")
ADDRESS_FORM = re.compile(r"0x[0-9a-fA-F]{40}")
WORD_FORM = re.compile(r"0x[0-9a-fA-F]{64}")


def refuse(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)


def parse_amount(text: str) -> int:
    match = AMOUNT_FORM.fullmatch(text.strip())
    wei = Decimal(match[1]) * WEI_PER_UNIT[match[2]] if match else Decimal("0.5")
    if wei != int(wei):
        raise refuse(
            f"`{text}` is no amount of ether", "write a number and its unit, e.g. `0.01ether`, `20gwei`, `5wei`"
        )
    return int(wei)


def parse_address(text: str) -> bytes:
    if not ADDRESS_FORM.fullmatch(text):
        raise refuse(f"`{text}` is no address", "write 0x and 40 hexadecimal digits")
    if text != text.lower() and text != "0x" + text[2:].upper() and not is_checksum_address(text):
        raise refuse(
            f"the checksum of the address `{text}` is wrong", "copy the address again; a digit or its case differs"
        )
    return bytes.fromhex(text[2:])


def parse_topic(text: str) -> bytes:
    if WORD_FORM.fullmatch(text):
        return bytes.fromhex(text[2:])
    owner, slash, name = text.partition("/")
    if not slash or not name:
        raise refuse(
            f"`{text}` names no topic",
            "write its id (0x and 64 hexadecimal digits), or its owner's address, a `/` and its name",
        )
    return compute_topic(parse_address(owner), require_text(name))


def require_text(words: str) -> str:
    """Words of a command line that must be text; Python hides other bytes in surrogates."""
    if not words.isascii() and any("\ud800" <= char <= "\udfff" for char in words):
        raise refuse(f"`{words!a}` is no UTF-8 text", "name the topic by its id")
    return words


def encode_words(words: str) -> bytes:
    """Words of a command line as the bytes that were typed."""
    return words.encode(errors="surrogateescape")


def parse_key(text: str) -> bytes:
    return bytes.fromhex(text[2:]) if WORD_FORM.fullmatch(text) else bytes(keccak(encode_words(text)))


def parse_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise refuse("the payload is no hexadecimal text", "write pairs of the digits 0-9 and a-f") from None


AMOUNT = FuncParamType(parse_amount)
ADDRESS = FuncParamType(parse_address)
TOPIC = FuncParamType(parse_topic)
KEY = FuncParamType(parse_key)
# The name that help pages show.
AMOUNT.name, ADDRESS.name, TOPIC.name, KEY.name = "amount", "address", "topic", "key"


def format_ether(gwei: int) -> str:
    """An amount as a person reads it: gwei while that is short, ether beyond."""
    if gwei < 10**6:
        return f"{gwei} gwei"
    return f"{Decimal(gwei) / 10**9:f} ether"


def shorten(data: bytes) -> str:
    """The two ends of a hash or id."""
    return f"0x{data[:4].hex()}..{data[-3:].hex()}"

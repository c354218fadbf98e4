"""Values of the plain types out of data in the one form in which compilers write them.

A few times faster than the library, which must take any form that the ABI allows. What is not in this form, and what is
wrong, is left to the library: it alone says what such data means.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

WORD = 32
ADDRESS_AT = 12
NUMBER = re.compile(r"(u?)int(\d+)")
FIXED = re.compile(r"bytes(\d+)")

PlainValue: TypeAlias = "int | bytes | bool | str"
WordReader = Callable[[bytes], "PlainValue | None"]
"""None where the word is not in its form."""


def decode_canonical(types: tuple[str, ...], data: bytes) -> "tuple[PlainValue, ...] | None":
    """None where a type is not plain, or the data not exactly as it should be."""
    readers, found, tail = find_readers(types), list["PlainValue"](), WORD * len(types)
    if readers is None:
        return None
    for at, reader in enumerate(readers):
        word = data[WORD * at : WORD * at + WORD]
        if reader is not None:
            value = reader(word) if len(word) == WORD else None
        elif word == tail.to_bytes(WORD) and (content := read_bytes(data, tail)) is not None:
            tail += WORD + len(content) + -len(content) % WORD
            value = content.decode(errors="backslashreplace") if types[at] == "string" else content
        else:
            return None
        if value is None:
            return None
        found.append(value)
    return tuple(found) if tail == len(data) else None


def read_bytes(data: bytes, at: int) -> bytes | None:
    """Length, bytes, and zeros up to a whole word."""
    begin = at + WORD
    end = begin + int.from_bytes(data[at:begin])
    padded = end + -(end - begin) % WORD
    return data[begin:end] if padded <= len(data) and not any(data[end:padded]) else None


@lru_cache(maxsize=1024)
def find_readers(types: tuple[str, ...]) -> tuple[WordReader | None, ...] | None:
    """None for a type of any length; None altogether where a type is of no plain kind."""
    readers = [None if name in ("bytes", "string") else build_reader(name) for name in types]
    is_plain = all(reader or name in ("bytes", "string") for reader, name in zip(readers, types, strict=True))
    return tuple(readers) if is_plain else None


def build_reader(name: str) -> WordReader | None:
    if name == "address":
        return lambda word: word[ADDRESS_AT:] if not any(word[:ADDRESS_AT]) else None
    if name == "bool":
        return {bytes(WORD): False, (1).to_bytes(WORD): True}.get
    if fixed := FIXED.fullmatch(name):
        length = int(fixed[1])
        return lambda word: word[:length] if not any(word[length:]) else None
    number = NUMBER.fullmatch(name)
    if number is None:
        return None
    bits, is_signed = int(number[2]), not number[1]
    lowest, end = (-(1 << bits - 1), 1 << bits - 1) if is_signed else (0, 1 << bits)

    def read_number(word: bytes) -> int | None:
        value = int.from_bytes(word, signed=is_signed)
        return value if lowest <= value < end else None

    return read_number

"""A node's answers, value by value: hexadecimal text in, `int` and `bytes` out."""

from proofcast.chain.io.rpc import Json
from proofcast.errors import InvalidInput, Reason

ANSWER_LENGTH_MAX = 80
"""Characters of a wrong answer that we repeat."""


def parse_quantity(text: Json) -> int:
    """A number as nodes write it."""
    try:
        return int(text, 16)
    except (TypeError, ValueError):
        raise refuse_answer("number", text) from None


def parse_bytes(text: Json) -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except (AttributeError, ValueError):
        raise refuse_answer("hexadecimal text", text) from None


def get_field(answer: Json, name: str) -> Json:
    """One field of an object, e.g. of a block."""
    if not isinstance(answer, dict) or name not in answer:
        raise refuse_answer(f"record with `{name}`", answer)
    return answer[name]


def get_list(answer: Json, what: str) -> list[Json]:
    if not isinstance(answer, list):
        raise refuse_answer(f"list of {what}", answer)
    return answer


def refuse_answer(what: str, answer: Json) -> InvalidInput:
    shown = ascii(answer)[:ANSWER_LENGTH_MAX]
    return InvalidInput(Reason.MALFORMED, f"the node sent `{shown}` for a {what}", hint="ask another node")

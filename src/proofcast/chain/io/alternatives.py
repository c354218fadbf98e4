"""Ask one source after the other until an answer is there and true."""

from collections.abc import Callable
from typing import TypeVar

from proofcast.chain.io.rpc import NodeRefused
from proofcast.chain.source import BlockSource
from proofcast.errors import InvalidInput, ProofcastError, Unavailable

Answer = TypeVar("Answer")

PASSED_OVER = (InvalidInput, NodeRefused, Unavailable)
"""What is the source's fault, so that another one may do better."""


def ask_in_turn(source: BlockSource, ask: Callable[[BlockSource], Answer]) -> Answer:
    """The first good answer; `ask` checks what it gets."""
    failures: list[tuple[str, ProofcastError]] = []
    for alternative in source.alternatives:
        try:
            return ask(alternative)
        except PASSED_OVER as error:
            failures.append((alternative.name, error))
    raise summarise(failures)


def summarise(failures: list[tuple[str, ProofcastError]]) -> ProofcastError:
    """One failure as it is; of several the gravest, with what every source said."""
    gravest = min((error for _, error in failures), key=lambda error: PASSED_OVER.index(get_kind(error)))
    if len(failures) == 1:
        return gravest
    said = "; ".join(f"`{name}`: {error}" for name, error in failures)
    return get_kind(gravest)(gravest.reason, f"no source had a true answer: {said}", hint=gravest.hint)


def get_kind(error: ProofcastError) -> type[InvalidInput] | type[Unavailable]:
    return InvalidInput if isinstance(error, InvalidInput) else Unavailable

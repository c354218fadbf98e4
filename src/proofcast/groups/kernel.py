"""The server's hot path, compiled where the kernel is built, else by its definitions in Python.

The kernel only says no; why is said by the definition, which then runs over the same bytes. So a refusal has one
wording whichever way it was found, and a kernel that refuses what the definition accepts is noticed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from proofcast.groups.attestation import LeafId
from proofcast.groups.epoch import collect_items, compute_frame_rows
from proofcast.groups.proof import Kind, compute_rows_digest
from proofcast.groups.series import parse_series

# Only mypy minds: it runs where the kernel is not built, too.
try:
    from proofcast_native import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        check_series as check_natively,
    )
    from proofcast_native import collect_contents as collect_natively
    from proofcast_native import compute_leaf_digests as compute_natively

    IS_NATIVE = True
except ImportError:
    IS_NATIVE = False


@dataclass(frozen=True, slots=True)
class SeriesFacts:
    """What the server must know of a series to accept it."""

    sender: bytes
    counter: int
    messages: int
    recipients: Sequence[bytes]
    """Of all messages, each once."""


@dataclass(frozen=True, slots=True)
class FrameDigests:
    """What is signed about a frame."""

    leaves: Sequence[tuple[LeafId, bytes]]
    """With the digests of their rows, in the order in which their clients first occur."""
    digests: Sequence[bytes]
    """Of the frame's series, in order."""
    messages: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What one client's packet of one kind holds."""

    leaf_id: LeafId
    count: int
    items: bytes


def check_series(data: bytes) -> SeriesFacts:
    facts = check_natively(data) if IS_NATIVE else None
    if facts is not None:
        return SeriesFacts(*facts)
    series = parse_series(data)
    assert not IS_NATIVE, f"the kernel refuses the series {data.hex()}"
    recipients = sorted({one for message in series.messages for one in message.recipients})
    return SeriesFacts(series.sender, series.counter, len(series.messages), recipients)


def compute_frame_digests(epoch: int, body: bytes) -> FrameDigests:
    if IS_NATIVE:
        leaves, digests, messages = compute_natively(epoch, body)
        return FrameDigests([((KINDS[kind], client), digest) for kind, client, digest in leaves], digests, messages)
    frame = compute_frame_rows(epoch, body)
    named = [(leaf_id, compute_rows_digest(rows)) for leaf_id, rows in frame.rows.items()]
    return FrameDigests(named, frame.digests, frame.message_count)


def collect_contents(epoch: int, body: bytes, digests: Sequence[bytes], shard: int, shards: int) -> list[Contents]:
    """What the packets of one shard's clients hold."""
    if IS_NATIVE:
        found = collect_natively(epoch, body, digests, shard, shards)
        return [Contents((KINDS[kind], client), count, items) for kind, client, count, items in found]
    items = collect_items(epoch, body, digests, shard, shards)
    return [Contents(leaf_id, len(own), b"".join(own)) for leaf_id, own in items.items()]


KINDS = tuple(Kind)
"""By number; a look-up is cheaper than making the enum's member."""

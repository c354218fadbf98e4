"""The server's hot path, compiled where the kernel is built, else by its definitions in Python.

The kernel only says no; why is said by the definition, which then runs over the same bytes. So a refusal has one
wording whichever way it was found, and a kernel that refuses what the definition accepts is noticed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proofcast.groups import shard_close
from proofcast.groups.attestation import compute_leaf_salt
from proofcast.groups.epoch import compute_frame_rows, compute_listed_digest
from proofcast.groups.frame import ENTRY_HEADER, Entry, EntryKind, iterate_places, parse_entries
from proofcast.groups.link import parse_list
from proofcast.groups.prefix_tree import PrefixTree, encode_path
from proofcast.groups.proof import INDEX_BITS, LEAF, Leaf, compute_leaf_hash
from proofcast.groups.series import scan_series
from proofcast.groups.shard_close import KINDS, FilledPacket
from proofcast.groups.wire import refuse

# Only mypy minds: it runs where the kernel is not built, too.
try:
    from proofcast_native import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        check_batch as check_natively,
    )
    from proofcast_native import hang_leaves as hang_natively
    from proofcast_native import list_last_series as list_last_natively
    from proofcast_native import list_requests as list_natively
    from proofcast_native import make_leaves as make_leaves_natively
    from proofcast_native import make_packets as make_packets_natively

    IS_NATIVE = True
except ImportError:
    IS_NATIVE = False


@dataclass(frozen=True, slots=True)
class Batch:
    """What the server must know of series that a device sends at once."""

    sender: bytes
    counter: int
    """Of the first; the others follow it without gaps."""
    count: int
    messages: int
    last_bytes: int
    """Length of the last series."""
    recipients: Sequence[bytes]
    """Of all messages, each once."""
    entries: bytes
    """For the log."""

    @property
    def last_counter(self) -> int:
        return self.counter + self.count - 1


@dataclass(frozen=True, slots=True)
class FrameLeaves:
    """What is signed about a frame."""

    leaves: bytes
    """Encoded, in the order in which their clients first occur."""
    digests: bytes
    """Of the frame's series, in order."""
    messages: int


def check_batch(data: bytes) -> Batch:
    """Of a list of series; refused unless each is well formed and they follow one another."""
    facts = check_natively(data) if IS_NATIVE else None
    if facts is not None:
        sender, (counter, count, messages, last_bytes), recipients, entries = facts
        return Batch(sender, counter, count, messages, last_bytes, recipients, entries)
    batch = define_batch(parse_list(data))
    assert not IS_NATIVE, f"the kernel refuses the batch {data.hex()}"
    return batch


def define_batch(items: list[bytes]) -> Batch:
    batch = [scan_series(item) for item in items]
    sender, first, _ = batch[0]
    if [(one, counter) for one, counter, _ in batch] != [(sender, first + at) for at in range(len(batch))]:
        raise refuse("the series of a batch are of several senders, or their counters do not follow one another")
    lists = [recipients for _, _, messages in batch for recipients in messages]
    entries: list[bytes] = []
    for item in items:
        entries += (ENTRY_HEADER.pack(EntryKind.SERIES, sender, len(item)), item)
    everybody = sorted(set().union(*lists))
    return Batch(sender, first, len(batch), len(lists), len(items[-1]), everybody, b"".join(entries))


def list_requests(body: bytes) -> list[Entry]:
    """The entries of a frame that are no series."""
    if IS_NATIVE:
        return [Entry(EntryKind(kind), client, entry) for kind, client, entry in list_natively(body)]
    return list(parse_entries(body, skip=EntryKind.SERIES))


def list_last_series(body: bytes) -> Iterable[tuple[bytes, bytes]]:
    """The last series of each client of a frame."""
    if IS_NATIVE:
        found: list[tuple[bytes, bytes]] = list_last_natively(body)
        return found
    last = {client: (begin, end) for kind, client, begin, end in iterate_places(body) if kind == EntryKind.SERIES}
    return [(client, body[begin:end]) for client, (begin, end) in last.items()]


def make_leaves(epoch: int, body: bytes, secret: bytes, ends: dict[bytes, int]) -> FrameLeaves:
    """`ends` says where the last leaf of each kind and client, in one byte string, ended."""
    if IS_NATIVE:
        return FrameLeaves(*make_leaves_natively(epoch, body, secret, ends))
    frame, parts = compute_frame_rows(epoch, body), []
    for (kind, client), rows in frame.rows.items():
        end, salt = ends.get(bytes([kind]) + client, 0), compute_leaf_salt(secret, epoch, (kind, client))
        parts.append(LEAF.pack(kind, client, end, epoch + 1 << INDEX_BITS, compute_listed_digest(rows), salt))
    return FrameLeaves(b"".join(parts), b"".join(frame.digests), frame.message_count)


def hang_leaves(server_key: bytes, epoch: int, leaves: bytes) -> tuple[bytes, Sequence[bytes]]:
    """The root of the tree of encoded leaves, and the encoded path of each."""
    if IS_NATIVE:
        root, paths = hang_natively(server_key, epoch, leaves)
        return root, paths
    encoded = [leaves[at : at + LEAF.size] for at in range(0, len(leaves), LEAF.size)]
    positions = [Leaf(*LEAF.unpack(leaf)).compute_position() for leaf in encoded]
    hashes = [compute_leaf_hash(leaf, server_key, epoch) for leaf in encoded]
    tree = PrefixTree(dict(zip(positions, hashes, strict=True)))
    return tree.root, [encode_path(tree.get_path(position)) for position in positions]


def make_packets(epoch: int, body: bytes, close: bytes) -> list[FilledPacket]:
    """What a shard's clients get of a signed epoch."""
    if not IS_NATIVE:
        return shard_close.make_packets(epoch, body, close)
    found = make_packets_natively(epoch, body, close)
    return [(KINDS[kind], client, packet, counter) for kind, client, packet, counter in found]

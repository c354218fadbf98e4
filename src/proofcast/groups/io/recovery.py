"""Everything behind the logs, made again from the last snapshot and what was logged since, bit by bit."""

from collections.abc import Iterator
from pathlib import Path

from nacl.signing import SigningKey

from proofcast.errors import InvalidInput, Reason
from proofcast.groups.attestor import Attestor, CloseRecord, parse_close_record
from proofcast.groups.io.log import SegmentLog, read_log, replace_file, trim_log
from proofcast.groups.io.serverkey import ServerKey
from proofcast.groups.notice import CHECKPOINTS_MAX, Notice
from proofcast.groups.server import Shard
from proofcast.groups.snapshot import Snapshot, parse_snapshot

FRAMES, CLOSES, SNAPSHOT = "frames", "closes", "snapshot"
"""What a server's folder holds besides its key."""


def sign_checkpoint(key: SigningKey, record: CloseRecord) -> bytes:
    """Ed25519 has no randomness: the same checkpoint has the same signature whenever it is signed."""
    return bytes(key.sign(record.checkpoint.get_signed_bytes()).signature)


def load_snapshot(folder: Path) -> Snapshot:
    path = folder / SNAPSHOT
    return parse_snapshot(path.read_bytes()) if path.exists() else Snapshot()


def recover_attestor(folder: Path, key: ServerKey, closes: SegmentLog, last: int) -> Attestor:
    """Learn the closed epochs, and close those whose frames are durable, up to frame `last`."""
    if closes.next_number > last + 1:
        message = f"epoch `{closes.next_number - 1}` is closed and the log ends at frame `{last}`"
        raise InvalidInput(Reason.DISAGREES, message, hint="restore the folder of frames; do not sign without it")
    attestor = load_attestor(folder, key, closes.next_number - 1)
    for frame in read_log(folder / FRAMES, closes.next_number):
        close_durably(attestor, closes, frame.number, bytes(frame.body))
    return attestor


def load_attestor(folder: Path, key: ServerKey, last: int) -> Attestor:
    """As it was after closing epoch `last`."""
    snapshot = load_snapshot(folder)
    attestor = Attestor(key.public, key.secret, snapshot.previous, snapshot.ends)
    for record in read_log(folder / CLOSES, snapshot.epoch + 1):
        if record.number <= last:
            attestor.apply_record(parse_close_record(bytes(record.body)))
    return attestor


def close_durably(attestor: Attestor, closes: SegmentLog, epoch: int, body: bytes) -> CloseRecord:
    record = attestor.close_frame(epoch, body)
    number = closes.append(record.encode())
    assert number == epoch, f"epoch {epoch} is closed by record {number}"
    attestor.apply_record(record)
    return record


def recover_shard(folder: Path, key: ServerKey, number: int, shards: int, last: int, *, known: int = 0) -> Shard:
    """As it was after epoch `last`: what was deleted first, then the packets that somebody still waits for.

    What was deleted later, up to the durable frame `known`, is left out: it would only be deleted again.
    """
    snapshot, shard = load_snapshot(folder), Shard(number, shards)
    shard.directory, shard.notice.cosignatures = snapshot.directory, snapshot.cosignatures
    shard.clients = {device: client for device, client in snapshot.clients.items() if shard.is_ours(device)}
    for frame in read_log(folder / FRAMES, snapshot.epoch + 1):
        if frame.number <= last:
            shard.replay_frame(frame.number, bytes(frame.body))
        elif frame.number <= known:
            shard.replay_deletions(frame.number, bytes(frame.body))
    needed = {record.checkpoint.epoch: record for record in iterate_needed(folder, shard, snapshot.epoch, last)}
    for frame in read_log(folder / FRAMES, min(needed)) if needed else ():
        if frame.number in needed:
            shard.frames[frame.number] = bytes(frame.body)
            shard.apply_close(frame.number, make_shard_close(needed[frame.number], key, number, shards))
    for client in shard.clients.values():
        client.attested = client.accepted
    hang_out(folder, key, shard.notice, max(snapshot.epoch, last - CHECKPOINTS_MAX), last)
    return shard


def hang_out(folder: Path, key: ServerKey, notice: Notice, after: int, last: int) -> None:
    """The checkpoints of the last epochs, for witnesses that were looking."""
    notice.signed = {}
    for close in read_log(folder / CLOSES, after + 1):
        if close.number <= last:
            record = parse_close_record(bytes(close.body))
            notice.add(close.number, record.checkpoint.encode() + sign_checkpoint(key.signing, record))


def iterate_needed(folder: Path, shard: Shard, after: int, last: int) -> Iterator[CloseRecord]:
    """The epochs beyond `after` that have packets which a client of the shard has not deleted."""
    for close in read_log(folder / CLOSES, after + 1):
        record = parse_close_record(bytes(close.body)) if close.number <= last else None
        if record is not None and shard.is_needed(record):
            yield record


def make_shard_close(record: CloseRecord, key: ServerKey, number: int, shards: int) -> bytes:
    return record.make_shard_closes(sign_checkpoint(key.signing, record), shards)[number]


def compact(folder: Path, key: ServerKey, last: int, *, known: int = 0) -> None:
    """Replace all that the logs hold up to the closed epoch `last` by a snapshot; `known` is a later, durable frame."""
    if last <= load_snapshot(folder).epoch:
        return
    shard = recover_shard(folder, key, 0, 1, last, known=known)
    attestor = load_attestor(folder, key, last)
    snapshot = Snapshot(
        last, attestor.previous, attestor.ends, shard.clients, shard.directory, shard.notice.cosignatures
    )
    replace_file(folder / SNAPSHOT, snapshot.encode())
    for log in (FRAMES, CLOSES):
        trim_log(folder / log, last + 1)

"""The attestor's process: a durable frame in, a durable close, a signature, the shards' parts out."""

from pathlib import Path

from proofcast.groups.attestation import LeafId
from proofcast.groups.attestor import ShardClose
from proofcast.groups.epoch import get_shard
from proofcast.groups.io.log import SegmentLog
from proofcast.groups.io.processes import EPOCH, Assignment, Link, LinkKind, open_link, run_child
from proofcast.groups.io.recovery import CLOSES, close_durably, recover_attestor, sign_checkpoint
from proofcast.groups.io.serverkey import load_server_key
from proofcast.groups.link import Message


class AttestorProcess:
    def __init__(self, folder: Path, last: int) -> None:
        self.key = load_server_key(folder)
        self.closes = SegmentLog(folder / CLOSES)
        self.attestor = recover_attestor(folder, self.key, self.closes, last)
        self.shards: list[Link] = []
        self.sequencer: Link

    def receive(self, message: Message) -> None:
        """Close, sign and hand out the epoch of a frame."""
        assert message.kind == LinkKind.FRAME, message.kind
        (epoch,) = EPOCH.unpack_from(message.body)
        record = close_durably(self.attestor, self.closes, epoch, message.body[EPOCH.size :])
        signature = sign_checkpoint(self.key.signing, record)
        parts: list[list[tuple[LeafId, bytes]]] = [[] for _ in self.shards]
        for leaf_id, attestation in record.make_attestations(signature, lambda client: True):
            parts[get_shard(leaf_id[1], len(self.shards))].append((leaf_id, attestation))
        for link, part in zip(self.shards, parts, strict=True):
            link.send(LinkKind.CLOSED, EPOCH.pack(epoch), ShardClose(part, record.digests).encode())
        self.sequencer.send(LinkKind.ATTESTED, EPOCH.pack(epoch))


def refuse_message(message: Message) -> None:
    raise AssertionError(f"a shard told the attestor {message.kind}")


async def run(assignment: Assignment) -> None:
    process = AttestorProcess(Path(assignment.options.folder), assignment.facts["last"])
    for number in range(assignment.options.shards):
        process.shards.append(await open_link(assignment.links[f"shard{number}"], refuse_message))
    process.sequencer = await open_link(assignment.links["sequencer"], process.receive)
    process.sequencer.send(LinkKind.READY)
    await process.sequencer.closed


if __name__ == "__main__":
    run_child(run)

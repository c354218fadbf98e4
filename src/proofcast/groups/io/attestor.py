"""The attestor's process: a durable frame in, a durable close, a signature, the shards' parts out."""

from pathlib import Path

from proofcast.groups.io.log import RecordReader, SegmentLog, parse_place
from proofcast.groups.io.processes import Assignment, Link, LinkKind, Options, open_link, run_child
from proofcast.groups.io.recovery import CLOSES, FRAMES, close_durably, recover_attestor, sign_checkpoint
from proofcast.groups.io.serverkey import load_server_key
from proofcast.groups.link import Message


class AttestorProcess:
    def __init__(self, options: Options, last: int) -> None:
        folder = Path(options.folder)
        self.key = load_server_key(folder)
        self.frames = RecordReader(folder / FRAMES)
        self.closes = SegmentLog(folder / CLOSES, segment_bytes_max=options.segment_bytes_max)
        self.attestor = recover_attestor(folder, self.key, self.closes, last)
        self.shards: list[Link] = []
        self.sequencer: Link

    def receive(self, message: Message) -> None:
        """Close, sign and hand out the epoch of a frame."""
        assert message.kind == LinkKind.FRAME, message.kind
        body = self.frames.read(parse_place(message.body))
        record = close_durably(self.attestor, self.closes, message.number, body)
        signature = sign_checkpoint(self.key.signing, record)
        for link, close in zip(self.shards, record.make_shard_closes(signature, len(self.shards)), strict=True):
            link.send(LinkKind.CLOSED, message.number, close)
        self.sequencer.send(LinkKind.DONE, message.number)


def refuse_message(message: Message) -> None:
    raise AssertionError(f"a shard told the attestor {message.kind}")


async def run(assignment: Assignment) -> None:
    process = AttestorProcess(assignment.options, assignment.facts["last"])
    for number in range(assignment.options.shards):
        process.shards.append(await open_link(assignment.links[f"shard{number}"], refuse_message))
    process.sequencer = await open_link(assignment.links["sequencer"], process.receive)
    process.sequencer.send(LinkKind.READY)
    await process.sequencer.closed


if __name__ == "__main__":
    run_child(run)

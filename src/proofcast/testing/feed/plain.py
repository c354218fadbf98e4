"""A feed in the plainest way there is, to compare with; and a process that follows a chain until it is killed.

    python -m proofcast.testing.feed.plain SOURCE FOLDER CHECKPOINT_NUMBER CHECKPOINT_HASH

prints a line after every poll: the sequence up to which journal and outbox are written.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

from proofcast.chain.io.source import open_source
from proofcast.chain.segment import BlockId
from proofcast.ethereum.bloom import LogFilter
from proofcast.ethereum.receipt import Log
from proofcast.event import Position, Step
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.feed.outbox import OutboxRow, build_rows

EVERYTHING = LogFilter()
PAUSE_S = 0.01


def match_steps(journal: Journal, outbox: Outbox, log_filter: LogFilter = EVERYTHING, limit: int = 100) -> int:
    """Write the rows of the next steps to the outbox; the sequence reached."""
    entries = journal.read(outbox.get_sequence(), limit)
    chain_id = journal.get_chain_id()
    rows = [row for entry in entries for row in build_rows(entry, chain_id, log_filter)]
    reached = entries[-1].step.sequence if entries else outbox.get_sequence()
    outbox.write(rows, reached)
    return reached


def perform_rows(rows: Iterable[OutboxRow]) -> list[tuple[Position, Log]]:
    """What a subscriber has who does what every row says; nothing is applied twice, or undone that is not there."""
    held: dict[Position, Log] = {}
    for row in rows:
        if row.step is Step.APPLY:
            assert row.position not in held, f"{row.position} twice"
            held[row.position] = row.log
        else:
            assert held.pop(row.position) == row.log
    return sorted(held.items(), key=lambda item: (item[0].block_number, item[0].log_index))


def follow(source: str, folder: Path, checkpoint: BlockId) -> None:
    follower, journal, outbox = FeedFollower(open_source(source), folder, checkpoint), Journal(folder), Outbox(folder)
    journal.acknowledge("outbox", outbox.get_sequence())

    def match() -> None:
        reached = match_steps(journal, outbox)
        journal.acknowledge("outbox", reached)
        print(reached, flush=True)

    def rest() -> None:
        match()
        time.sleep(PAUSE_S)

    while True:
        follower.follow(is_enough=lambda: False, rest=rest)


if __name__ == "__main__":
    follow(sys.argv[1], Path(sys.argv[2]), BlockId(int(sys.argv[3]), bytes.fromhex(sys.argv[4])))

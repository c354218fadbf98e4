"""The outbox: a repeated batch changes nothing, and its rows name a log completely."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proofcast.chain.io.source import open_source
from proofcast.errors import InvalidRequest
from proofcast.ethereum.bloom import LogFilter
from proofcast.event import Position, Step
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.feed.outbox import OutboxRow, build_rows
from proofcast.testing.chain import ChainSimulator, SimulatedNode
from proofcast.testing.feed.plain import EVERYTHING, match_steps, perform_rows

SEED, CHAIN_ID = 71, 31_337


@pytest.fixture
def chain() -> ChainSimulator:
    chain = ChainSimulator(SEED)
    chain.mine(5)
    return chain


@pytest.fixture
def follower(chain: ChainSimulator, tmp_path: Path) -> Iterator[FeedFollower]:
    with SimulatedNode(chain) as node:
        yield FeedFollower(open_source(node.url), tmp_path, chain.canonical[0].id)


def read_rows(folder: Path) -> list[OutboxRow]:
    return [row for entry in Journal(folder).read(0) for row in build_rows(entry, CHAIN_ID, EVERYTHING)]


def list_logs(chain: ChainSimulator) -> list[tuple[bytes, bytes]]:
    return [(block.hash, log.data) for block in chain.canonical for log in block.logs]


def test_step_whose_block_was_trimmed_is_refused_not_skipped(
    chain: ChainSimulator, follower: FeedFollower, tmp_path: Path
) -> None:
    chain.mine(10)
    follower.poll()  # with no reader registered, what is final is dropped at once
    with pytest.raises(InvalidRequest, match="the bytes of block `1`, step `1`, are no longer journalled"):
        match_steps(Journal(tmp_path), Outbox(tmp_path))


def test_undone_block_is_kept_until_its_undoing_was_read(
    chain: ChainSimulator, follower: FeedFollower, tmp_path: Path
) -> None:
    journal, outbox = Journal(tmp_path), Outbox(tmp_path)
    follower.poll()
    journal.acknowledge("outbox", match_steps(journal, outbox))
    chain.reorg(3, 20)
    follower.poll()
    match_steps(journal, outbox)
    assert [(at.block_hash, log.data) for at, log in perform_rows(outbox.read(CHAIN_ID))] == list_logs(chain)


def test_batch_written_twice_is_written_once(follower: FeedFollower, tmp_path: Path) -> None:
    follower.poll()
    outbox, rows = Outbox(tmp_path), read_rows(tmp_path)
    assert outbox.write(rows[:4], up_to_sequence=1) == 4
    assert outbox.write(rows, up_to_sequence=5) == len(rows) - 4
    assert outbox.write(rows, up_to_sequence=2) == 0
    assert outbox.read(CHAIN_ID) == rows
    assert outbox.get_sequence() == 5


def test_rows_are_read_behind_a_place(follower: FeedFollower, tmp_path: Path) -> None:
    follower.poll()
    outbox, rows = Outbox(tmp_path), read_rows(tmp_path)
    outbox.write(rows, up_to_sequence=5)
    third = rows[2]
    assert outbox.read(CHAIN_ID, (third.sequence, third.position.log_index), limit=2) == rows[3:5]


def test_empty_outbox_is_at_the_start(tmp_path: Path) -> None:
    assert Outbox(tmp_path).get_sequence() == 0
    assert Outbox(tmp_path).read(CHAIN_ID) == []


def test_row_names_the_log_completely(chain: ChainSimulator, follower: FeedFollower, tmp_path: Path) -> None:
    """O4 of the notes, on the way to a subscriber."""
    follower.poll()
    rows = read_rows(tmp_path)
    first = chain.canonical[1]
    expected = [
        Position(CHAIN_ID, 1, first.hash, index, sum(len(before.logs) for before in first.receipts[:index]) + at)
        for index, receipt in enumerate(first.receipts)
        for at in range(len(receipt.logs))
    ]
    assert [row.position for row in rows if row.position.block_number == 1] == expected
    assert rows[0].timestamp == first.header.timestamp
    assert len({row.position for row in rows}) == len(rows)


def test_reorg_undoes_every_row_of_the_orphans(chain: ChainSimulator, follower: FeedFollower, tmp_path: Path) -> None:
    journal, outbox = Journal(tmp_path), Outbox(tmp_path)
    follower.poll()
    match_steps(journal, outbox)
    orphans = chain.canonical[-2:]
    chain.reorg(2)
    follower.poll()
    match_steps(journal, outbox)
    rows = outbox.read(CHAIN_ID)
    undone = [row.log for row in rows if row.step is Step.UNDO]
    assert undone == [log for block in reversed(orphans) for log in block.logs]
    assert [(at.block_hash, log.data) for at, log in perform_rows(rows)] == list_logs(chain)


def test_only_what_is_wanted_is_written(chain: ChainSimulator, follower: FeedFollower, tmp_path: Path) -> None:
    follower.poll()
    wanted = LogFilter(frozenset({chain.canonical[3].logs[0].address}))
    match_steps(Journal(tmp_path), Outbox(tmp_path), wanted)
    rows = Outbox(tmp_path).read(CHAIN_ID)
    assert [row.log for row in rows] == [log for block in chain.canonical for log in block.logs if wanted.matches(log)]
    assert rows

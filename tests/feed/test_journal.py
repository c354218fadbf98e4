"""The journal: one fenced writer, steps that never change, bytes for as long as they are needed."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from proofcast.chain.profile import get_profile
from proofcast.chain.segment import BlockId
from proofcast.chain.steps import BlockLink, CanonicalChain, ChainStep
from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedBlock, verify_block
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.event import Finality, Step
from proofcast.feed.io.database import FILE
from proofcast.feed.io.sqlite import Journal
from proofcast.feed.journal import compute_state
from proofcast.testing.chain import ChainSimulator, SimulatedBlock

CHAIN_ID, SEED = 31_337, 51
PROFILE = get_profile(CHAIN_ID)


@pytest.fixture
def chain() -> ChainSimulator:
    chain = ChainSimulator(SEED)
    chain.mine(6)
    return chain


def verify(blocks: Sequence[SimulatedBlock]) -> list[VerifiedBlock]:
    return [verify_block(block.raw, PROFILE) for block in blocks]


def build_steps(chain: ChainSimulator) -> list[ChainStep]:
    links = [block.link for block in verify(chain.canonical[1:])]
    return CanonicalChain(chain.canonical[0].id).adopt(links)


# --- refusals


def test_replaced_writer_is_fenced_off(chain: ChainSimulator, tmp_path: Path) -> None:
    journal, steps = Journal(tmp_path), build_steps(chain)
    first = journal.open_writer(CHAIN_ID, chain.canonical[0].id)
    second = journal.open_writer(CHAIN_ID, chain.canonical[0].id)
    with pytest.raises(InvalidRequest, match=r"writer `1` of the feed .* was replaced by writer `2`") as refused:
        first.append(steps, verify(chain.canonical[1:]))
    assert refused.value.reason is Reason.FENCED
    second.append(steps, verify(chain.canonical[1:]))
    with pytest.raises(InvalidRequest, match="was replaced"):
        first.trim()


@pytest.mark.parametrize("skipped", [0, 2])
def test_step_out_of_sequence_is_refused_and_nothing_is_written(
    skipped: int, chain: ChainSimulator, tmp_path: Path
) -> None:
    journal, steps = Journal(tmp_path), build_steps(chain)
    writer = journal.open_writer(CHAIN_ID, chain.canonical[0].id)
    gap = [*steps[:skipped], *steps[skipped + 1 :]]
    with pytest.raises(InvalidRequest) as refused:
        writer.append(gap, verify(chain.canonical[1:])[1:] if skipped == 0 else ())
    assert refused.value.reason is Reason.STALE_SEQUENCE
    assert journal.read(0) == []


def test_other_chain_is_refused(chain: ChainSimulator, tmp_path: Path) -> None:
    Journal(tmp_path).open_writer(CHAIN_ID, chain.head.id)
    with pytest.raises(InvalidRequest, match="is of chain `31337`, not `1`") as refused:
        Journal(tmp_path).open_writer(1, chain.head.id)
    assert refused.value.reason is Reason.WRONG_NETWORK


def test_empty_journal_is_not_there_yet(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="nothing is journalled"):
        Journal(tmp_path).read_state()


def test_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"certainly no database, whatever one tries")
    with pytest.raises(InvalidRequest, match="file is not a database"):
        Journal(tmp_path)


def test_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(InvalidRequest, match="version 99, not 2"):
        Journal(tmp_path)


def test_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequest, match="cannot be used"):
        Journal(tmp_path / "file" / "folder")


def test_full_disk_loses_nothing(chain: ChainSimulator, tmp_path: Path) -> None:
    journal, steps, blocks = Journal(tmp_path), build_steps(chain), verify(chain.canonical[1:])
    writer = journal.open_writer(CHAIN_ID, chain.canonical[0].id)
    writer.append(steps[:3], blocks[:3])
    connection = journal._database._connect()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to have no more space
    with pytest.raises(Unavailable, match="database or disk is full") as refused:
        writer.append(steps[3:], blocks[3:])
    assert refused.value.reason is Reason.NOT_STORED
    assert journal.read_state().head == chain.canonical[3].id
    connection.execute("PRAGMA max_page_count = 1000000")
    writer.append(steps[3:], blocks[3:])
    assert journal.read_state().head == chain.head.id


# --- what is journalled


def test_entries_are_read_as_they_were_written(chain: ChainSimulator, tmp_path: Path) -> None:
    journal, steps = Journal(tmp_path), build_steps(chain)
    journal.open_writer(CHAIN_ID, chain.canonical[0].id).append(steps, verify(chain.canonical[1:]))
    entries = journal.read(2, limit=3)
    assert [entry.step for entry in entries] == steps[2:5]
    assert [entry.block.receipts for entry in entries if entry.block] == [
        block.raw.receipts for block in chain.canonical[3:6]
    ]
    assert Journal(tmp_path).read(2, limit=3) == entries


def test_orphaned_block_is_kept_until_finality(chain: ChainSimulator, tmp_path: Path) -> None:
    machine, journal = CanonicalChain(chain.canonical[0].id), Journal(tmp_path)
    writer = journal.open_writer(CHAIN_ID, chain.canonical[0].id)
    old = verify(chain.canonical[1:])
    writer.append(machine.adopt([block.link for block in old]), old)
    new = verify(chain.reorg(2))
    writer.append(machine.adopt([block.link for block in new]), new)
    writer.append(machine.settle(Finality.FINALIZED, old[2].link.id))
    writer.trim()
    kept = {entry.step.hash for entry in journal.read(0) if entry.block}
    assert kept == {block.hash for block in (*old[3:], *new)}
    writer.append(machine.settle(Finality.FINALIZED, new[-1].link.id))
    assert writer.trim() == 6
    assert {entry.block for entry in journal.read(0)} == {None}
    assert [entry.step.step for entry in journal.read(0)].count(Step.APPLY) == 9


def test_blocks_wait_for_the_slowest_reader(chain: ChainSimulator, tmp_path: Path) -> None:
    machine, journal = CanonicalChain(chain.canonical[0].id), Journal(tmp_path)
    writer = journal.open_writer(CHAIN_ID, chain.canonical[0].id)
    blocks = verify(chain.canonical[1:])
    writer.append(machine.adopt([block.link for block in blocks]), blocks)
    writer.append(machine.settle(Finality.FINALIZED, blocks[-1].link.id))
    journal.acknowledge("fast", 6)
    journal.acknowledge("slow", 2)
    journal.acknowledge("slow", 1)  # moves nowhere
    assert writer.trim() == 2
    assert [entry.block is None for entry in journal.read(0, limit=6)] == [True, True, False, False, False, False]
    journal.forget("slow")
    assert writer.trim() == 4


def test_state_is_that_of_the_machine(chain: ChainSimulator, tmp_path: Path) -> None:
    machine, journal = CanonicalChain(chain.canonical[0].id), Journal(tmp_path)
    writer = journal.open_writer(CHAIN_ID, chain.canonical[0].id)
    for depth in (0, 2, 1, 3):
        blocks = verify(chain.reorg(depth, depth + 2) if depth else chain.canonical[1:])
        writer.append(machine.adopt([block.link for block in blocks]), blocks)
        writer.append(machine.settle(Finality.SAFE, chain.get_settled(Finality.SAFE).id))
        writer.append(machine.settle(Finality.FINALIZED, chain.get_settled(Finality.FINALIZED).id))
        state = journal.read_state()
        assert (state.head, state.sequence) == (machine.head, machine.sequence)
        assert state.links == tuple(machine.list_links())
        assert state.safe == machine.get_settled(Finality.SAFE)
        assert state.finalized == machine.get_settled(Finality.FINALIZED)


def test_state_folded_from_all_steps_is_the_same(chain: ChainSimulator, tmp_path: Path) -> None:
    journal, genesis = Journal(tmp_path), chain.canonical[0].id
    steps = build_steps(chain)
    final = replace(steps[-1], sequence=7, step=Step.FINAL, number=3, hash=chain.canonical[3].hash)
    final = replace(final, finality=Finality.FINALIZED, parent_hash=chain.canonical[2].hash)
    writer = journal.open_writer(CHAIN_ID, genesis)
    writer.append(steps, verify(chain.canonical[1:]))
    writer.append([final])
    assert journal.read_state() == compute_state(genesis, [*steps, final])


def test_checkpoint_of_an_existing_journal_stays(chain: ChainSimulator, tmp_path: Path) -> None:
    Journal(tmp_path).open_writer(CHAIN_ID, chain.canonical[2].id)
    writer = Journal(tmp_path).open_writer(CHAIN_ID, BlockId(99, bytes(32)))
    assert writer.read_state().finalized == chain.canonical[2].id


def test_links_survive_with_their_trust(chain: ChainSimulator, tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    block = verify(chain.canonical[1:2])[0]
    machine = CanonicalChain(chain.canonical[0].id)
    journal.open_writer(CHAIN_ID, chain.canonical[0].id).append(machine.adopt([block.link]), [block])
    (link,) = journal.read_state().links
    assert isinstance(link, BlockLink)
    assert link == block.link


def test_trust_of_a_block_is_what_was_last_said(chain: ChainSimulator, tmp_path: Path) -> None:
    journal, steps = Journal(tmp_path), build_steps(chain)
    block = chain.canonical[1]
    assert journal.find_trust(block.hash) is None
    writer = journal.open_writer(CHAIN_ID, chain.canonical[0].id)
    writer.append(steps, verify(chain.canonical[1:]))
    assert journal.find_trust(block.hash) is Trust.LINKED
    agreed = replace(steps[0], sequence=len(steps) + 1, step=Step.FINAL, trust=Trust.AGREED, finality=Finality.SAFE)
    writer.append([agreed], ())
    assert journal.find_trust(block.hash) is Trust.AGREED

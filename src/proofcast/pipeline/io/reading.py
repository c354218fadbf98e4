"""What a worker does: fetch, verify, hand over Arrow batches."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from proofcast.chain.io.fetch import fetch_blocks
from proofcast.chain.profile import get_profile
from proofcast.chain.segment import Segment
from proofcast.chain.verify import VerifiedBlock, verify_block
from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Finality, Step
from proofcast.feed.journal import JournalEntry
from proofcast.pipeline.io.planning import open_checked
from proofcast.pipeline.options import ReadOptions
from proofcast.pipeline.rows import StepRow, build_table, select_logs
from proofcast.pipeline.schemas import ARROW, TASKS, Table

STEPS_PER_ARROW_BATCH = 32
"""Enough rows to be worth a batch, few enough to stay below some megabytes."""
WITH_BODIES = (TASKS, Table.TRANSACTIONS)


@dataclass(frozen=True, slots=True)
class JournalTask:
    """Journalled steps with the bytes of their blocks: whoever reads them needs neither the journal nor a node."""

    chain_id: int
    entries: tuple[JournalEntry, ...]


@dataclass(frozen=True, slots=True)
class RangeTask:
    """A settled segment, to be fetched by whoever reads it."""

    segment: Segment
    sequence: int = 0
    """Of every row: settled blocks come before all steps that are journalled later."""
    settles: Finality | None = None
    """Whether a row behind the last block says that everything so far is settled."""


Task = RangeTask | JournalTask


def read_task(task: Task, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows that are asked for, or the task itself for whoever wants to do it elsewhere."""
    if options.table == TASKS:
        return iter([pa.record_batch([[pickle.dumps((task, options))]], schema=ARROW[TASKS])])
    return build_batches(list_steps(task, options), options)


def unpack_tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[Iterator[StepRow]]:
    """The steps of each task among rows of `tasks`."""
    for batch in batches:
        for packed in batch["task"].to_pylist():
            yield list_steps(*pickle.loads(packed))


def list_steps(task: Task, options: ReadOptions) -> Iterator[StepRow]:
    """Fetched and verified while they are listed."""
    if isinstance(task, RangeTask):
        return list_range_steps(task, options)
    return (verify_entry(entry, task.chain_id) for entry in task.entries)


def list_range_steps(task: RangeTask, options: ReadOptions) -> Iterator[StepRow]:
    source, profile = open_checked(options)
    wanted = options.log_filter if options.log_filter.clauses else None
    with_bodies = options.table in WITH_BODIES and options.bodies
    for block in fetch_blocks(source, task.segment, profile, wanted, with_transactions=with_bodies):
        yield apply_block(task.sequence, profile.chain_id, block)
    if task.settles:
        last, trust = task.segment.last, task.segment.trust
        yield StepRow(
            task.sequence, Step.FINAL, last, task.segment.last_hash, trust, task.settles, profile.chain_id, None
        )


def verify_entry(entry: JournalEntry, chain_id: int) -> StepRow:
    """The step with its block, which was verified before it was journalled and is again: bytes on a disk may change."""
    step, block = entry.step, None
    if entry.block is not None:
        block = verify_block(entry.block, get_profile(chain_id), step.hash, None, step.trust)
    elif step.step is not Step.FINAL:
        raise InvalidRequest(
            Reason.STALE_SEQUENCE,
            f"the journal no longer has the bytes of block `{step.number}`, step `{step.sequence}` (`{step.step}`)",
            hint="begin anew: `proofcast pipeline backfill` into another folder, then follow there",
        )
    return StepRow(step.sequence, step.step, step.number, step.hash, step.trust, step.finality, chain_id, block)


def apply_block(sequence: int, chain_id: int, block: VerifiedBlock) -> StepRow:
    return StepRow(sequence, Step.APPLY, block.header.number, block.hash, block.trust, Finality.LATEST, chain_id, block)


def build_batches(steps: Iterator[StepRow], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Batches of the wanted table and columns."""
    for chunk in cut(steps):
        if options.log_filter.clauses:
            rows = select_logs(build_table(chunk, options.table), options.log_filter)
            yield rows.select(list(options.columns)) if options.columns else rows
        else:
            yield build_table(chunk, options.table, options.columns)


def cut(steps: Iterator[StepRow]) -> Iterator[list[StepRow]]:
    while chunk := list(islice(steps, STEPS_PER_ARROW_BATCH)):
        yield chunk

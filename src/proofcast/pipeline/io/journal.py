"""The stream reader of a journal: every step that its one writer has written, in order."""

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from proofcast.feed.io.sqlite import Journal
from proofcast.feed.journal import JournalEntry
from proofcast.pipeline.io.failures import carried
from proofcast.pipeline.io.reading import JournalTask, read_task
from proofcast.pipeline.offsets import Offset, OffsetFields, parse_offset
from proofcast.pipeline.options import ReadOptions

STEPS_MAX = 1_024
"""Looked ahead at a time, whatever the limit: their blocks are in memory."""


class JournalStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in one process on the driver's side; only `read` runs elsewhere, and needs nothing but its task."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._ahead: list[JournalEntry] = []
        """Read from the journal and not yet committed."""
        self._target: int | None = None

    @cached_property
    def _journal(self) -> Journal:
        return Journal(Path(self._options.journal))

    def initialOffset(self) -> OffsetFields:  # noqa: N802
        with carried():
            begin = parse_offset(json.loads(self._options.after)) if self._options.after else Offset(0, 0, b"")
            self._acknowledge(begin.sequence)
            return begin.encode()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with carried():
            self._target = self._journal.read_state().sequence

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.blocks_per_batch)

    def latestOffset(self, start: OffsetFields, limit: ReadLimit) -> OffsetFields:  # noqa: N802
        with carried():
            begin = parse_offset(start)
            steps_max = min(limit.max_rows, STEPS_MAX) if isinstance(limit, ReadMaxRows) else STEPS_MAX
            entries = self._look_ahead(begin.sequence, steps_max)
            if self._target is not None:
                entries = [entry for entry in entries if entry.step.sequence <= self._target]
            if not entries:
                return start
            last = entries[-1].step
            return Offset(last.sequence, last.number, last.hash).encode()

    def partitions(self, start: OffsetFields, end: OffsetFields) -> list[InputPartition]:
        with carried():
            begin, until = parse_offset(start).sequence, parse_offset(end).sequence
            entries = self._look_ahead(begin, until - begin)
            chain_id = self._journal.get_chain_id()
            length = self._options.blocks_per_partition
            chunks = [tuple(entries[at : at + length]) for at in range(0, len(entries), length)]
            return [InputPartition(JournalTask(chain_id, chunk)) for chunk in chunks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with carried():
            yield from read_task(partition.value, self._options)

    def commit(self, end: OffsetFields) -> None:
        with carried():
            sequence = parse_offset(end).sequence
            self._ahead = [entry for entry in self._ahead if entry.step.sequence > sequence]
            self._acknowledge(sequence)

    def _look_ahead(self, sequence: int, count: int) -> list[JournalEntry]:
        """At most `count` entries behind `sequence`; what was read before is not read again."""
        known = [entry for entry in self._ahead if entry.step.sequence > sequence]
        gapless = not known or known[0].step.sequence == sequence + 1
        known = known if gapless else []
        if len(known) < count:
            after = known[-1].step.sequence if known else sequence
            known += self._journal.read(after, count - len(known))
            self._ahead = known
        return known[:count]

    def _acknowledge(self, sequence: int) -> None:
        if self._options.reader:
            self._journal.acknowledge(self._options.reader, sequence)

    def __getstate__(self) -> dict[str, object]:
        """Of the reader that travels to workers: what was asked for, and no connection."""
        return {"_options": self._options, "_ahead": [], "_target": None}


def register_reader(folder: str, reader: str, after: Offset | None) -> None:
    """Have the journal keep what a reader has not read yet."""
    Journal(Path(folder)).acknowledge(reader, after.sequence if after else 0)

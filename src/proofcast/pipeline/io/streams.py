"""The stream readers of `evm`: settled blocks of a source.

An offset is the place of the last step read: its sequence, and the number and hash of its block. The same two offsets
always give the same rows: the hash at the end names every block before it.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate, takewhile

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from proofcast.chain.io.fetch import link_range
from proofcast.chain.segment import BlockId, Segment
from proofcast.chain.verify import disagree, verify_header
from proofcast.event import Finality
from proofcast.pipeline.io.failures import carried
from proofcast.pipeline.io.planning import get_first, get_last, open_checked
from proofcast.pipeline.io.reading import RangeTask, read_task
from proofcast.pipeline.offsets import Offset, OffsetFields, parse_offset
from proofcast.pipeline.options import ReadOptions


class RangeStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Settled blocks, a bounded number at a time; ends at the `last` one, or at what was settled when it began."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._segments: list[Segment] = []
        """The way ahead, linked, in the length of one task."""
        self._target: int | None = None
        """Where a stream ends that reads only what is there now."""

    def initialOffset(self) -> OffsetFields:  # noqa: N802
        with carried():
            if self._options.after:
                return parse_offset(json.loads(self._options.after)).encode()
            source, _ = open_checked(self._options)
            first = get_first(self._options)
            header = verify_header(source.get_headers(first, first)[0]).header
            return Offset(0, first - 1, header.parent_hash).encode()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with carried():
            self._target = get_last(open_checked(self._options)[0], self._options)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.blocks_per_batch)

    def latestOffset(self, start: OffsetFields, limit: ReadLimit) -> OffsetFields:  # noqa: N802
        with carried():
            begin = parse_offset(start)
            ahead = self._look_ahead(begin)
            taken = take_blocks(ahead, limit.max_rows) if isinstance(limit, ReadMaxRows) else ahead
            return Offset(begin.sequence, taken[-1].last, taken[-1].last_hash).encode() if taken else start

    def partitions(self, start: OffsetFields, end: OffsetFields) -> list[InputPartition]:
        with carried():
            begin, until = parse_offset(start), parse_offset(end)
            segments = [known for known in self._segments if begin.number < known.first and known.last <= until.number]
            if sum(map(len, segments)) != until.number - begin.number:
                segments = self._link(begin, until.number, None)
            if segments and segments[-1].last_hash != until.hash:
                raise disagree(f"the hash of block `{until.number}`", segments[-1].last_hash, until.hash)
            return [InputPartition(task) for task in build_tasks(segments, begin.sequence, self._options.finality)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with carried():
            yield from read_task(partition.value, self._options)

    def commit(self, end: OffsetFields) -> None:
        done = parse_offset(end).number
        self._segments = [segment for segment in self._segments if segment.last > done]

    def _look_ahead(self, begin: Offset) -> list[Segment]:
        """The linked segments behind `begin`; more are linked where none is left."""
        ahead = [segment for segment in self._segments if segment.first > begin.number]
        if ahead and ahead[0].first == begin.number + 1:
            return ahead
        last = self._target if self._target is not None else get_last(open_checked(self._options)[0], self._options)
        if last > begin.number:
            self._segments = self._link(begin, last, self._options.checkpoint)
            return self._segments
        return []

    def _link(self, begin: Offset, last: int, checkpoint: BlockId | None) -> list[Segment]:
        source, _ = open_checked(self._options)
        useful = checkpoint if checkpoint and checkpoint.number >= begin.number else None
        length = min(self._options.blocks_per_partition, self._options.blocks_per_batch)
        segments = link_range(source, begin.number + 1, last, length, useful)
        if segments[0].parent_hash != begin.hash:
            raise disagree(f"the parent of block `{begin.number + 1}`", segments[0].parent_hash, begin.hash)
        return segments


def take_blocks(segments: Sequence[Segment], blocks_max: int) -> list[Segment]:
    """The first ones that together have no more blocks; one at least, or nothing would ever move."""
    ends = accumulate(map(len, segments))
    fitting = sum(1 for _ in takewhile(lambda end: end <= blocks_max, ends))
    return list(segments[: max(fitting, 1)])


def build_tasks(segments: Sequence[Segment], sequence: int, finality: Finality) -> list[RangeTask]:
    """One for each segment; the last one also says that everything so far is settled, where it is."""
    settles = None if finality is Finality.LATEST else finality
    return [RangeTask(segment, sequence, settles if segment is segments[-1] else None) for segment in segments]

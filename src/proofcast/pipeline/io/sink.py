"""How a batch of steps gets into all tables."""

from collections.abc import Callable, Collection, Sequence

from pyspark.sql import DataFrame, SparkSession

from proofcast.pipeline.decoding import Abi
from proofcast.pipeline.io.files import FILES, TableFile, WriteRequest, parse_file, write_tasks
from proofcast.pipeline.io.tables import Tables, get_absolute
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.schemas import Table, convert_schema

Watch = Callable[[Offset], None]
"""Told how far all tables are whole, after every batch."""


class TableSink:
    """Appends to each table what it does not have yet, `blocks` last; one verified read feeds all of them."""

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        abis: Sequence[Abi],
        watch: Watch,
        kept: Collection[Table] = tuple(Table),
    ) -> None:
        """`kept` are the tables that are filled, `blocks` among them; the others stay empty."""
        assert Table.BLOCKS in kept, "`blocks` says how far the others are whole"
        self._tables, self._abis, self._watch = tables, tuple(abis), watch
        begun = tables.exists(spark)
        tables.create(spark)
        self.end = tables.find_end(spark) if begun else None
        """How far all tables are whole."""
        ends = tables.find_ends(spark, self.end) if begun else dict.fromkeys(Table)
        self._ends = {table: ends[table] for table in Table if table in kept}

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Have the tasks of a batch done and what they wrote committed."""
        request = WriteRequest(get_absolute(self._tables.folder), self._ends, self._abis)
        written = batch.mapInArrow(lambda tasks: write_tasks(tasks, request), convert_schema(FILES)).collect()
        files = list(map(parse_file, written))
        steps = [file.end for file in files if file.table is Table.BLOCKS]
        if steps:
            self._commit(batch.sparkSession, files, max(steps))

    def _commit(self, spark: SparkSession, files: Sequence[TableFile], end: Offset) -> None:
        for table in self._ends:
            self._tables.append(spark, table, [file for file in files if file.table is table], end)
        self.end, self._ends = end, dict.fromkeys(self._ends, end)
        self._watch(end)

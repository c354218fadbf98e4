"""How a batch of steps gets into all tables."""

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from proofcast.pipeline.decoding import Abi, decode_logs
from proofcast.pipeline.io.tables import Tables, find_end
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.schemas import Table
from proofcast.pipeline.transforms import is_after, select_table

Watch = Callable[[Offset], None]
"""Told how far all tables are whole, after every batch."""


class TableSink:
    """Appends to each table what it does not have yet, `blocks` last; one verified read feeds all of them."""

    def __init__(self, spark: SparkSession, tables: Tables, abis: Sequence[Abi], watch: Watch) -> None:
        assert abis, "the events of at least one ABI are decoded"
        self._tables, self._abis, self._watch = tables, abis, watch
        self.end = tables.find_end(spark)
        """How far all tables are whole."""
        self._ends = tables.find_ends(spark, self.end)

    def write(self, batch: DataFrame, batch_id: int) -> None:
        steps = batch.persist()
        try:
            end = find_end(steps)
            if end is not None:
                self._write_tables(steps, end)
                self.end, self._ends = end, dict.fromkeys(Table, end)
                self._watch(end)
        finally:
            steps.unpersist()

    def _write_tables(self, steps: DataFrame, end: Offset) -> None:
        for table in Table:
            after = self._ends[table]
            rows = self._select(steps.filter(is_after(after)) if after else steps, table)
            self._tables.append(rows, table, end)

    def _select(self, steps: DataFrame, table: Table) -> DataFrame:
        if table is not Table.EVENTS:
            return select_table(steps, table)
        logs = select_table(steps, Table.LOGS)
        return reduce(DataFrame.unionByName, [decode_logs(logs, abi) for abi in self._abis])

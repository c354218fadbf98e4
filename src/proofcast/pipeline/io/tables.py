"""The tables of one chain, as Delta Lake files in one folder, and how a batch of steps gets into all of them at once.

`blocks` is written last, so its last row is how far all tables are whole: a crash in between leaves rows in some tables
behind that place, which no view shows and which the next run, beginning at that place, does not write again. Each
append carries the place of its end as Delta's transaction version.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql

from proofcast.event import Finality
from proofcast.pipeline.io.commits import commit_files, read_version
from proofcast.pipeline.io.files import TableFile
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.schemas import CLUSTERED_BY, Table, get_spark_schema
from proofcast.pipeline.transforms import compute_last_place, is_after, select_canonical

COMMIT = re.compile(r"\d{20}\.(json|checkpoint\b.*parquet)$")
"""A commit in Delta's log, or the checkpoint that replaces the commits before it."""
JSON = re.compile(r"\d{20}\.json$")
CREATION = f"{0:020}.json"
"""The first commit, which has no rows."""
COMMITS_PER_CHECKPOINT = 100
"""A checkpoint of Delta's log takes seconds, in which nothing else is quick; reading a hundred commits does not."""
SEQUENCE_SHIFT = 32
"""A version is one number: the sequence above the block number, which has 32 bits for a few centuries."""


@dataclass(frozen=True, slots=True)
class Tables:
    folder: str

    def get_path(self, table: Table) -> str:
        return f"{self.folder}/{table}"

    def get_name(self, table: Table) -> str:
        """For SQL, which takes a path that is not absolute for a name in its catalogue."""
        return f"delta.`{get_absolute(self.get_path(table)).replace('`', '``')}`"

    def exists(self, spark: SparkSession, table: Table = Table.BLOCKS) -> bool:
        """Was anything ever committed? A folder alone may be what a full disk left of the first attempt."""
        files, log = self._open_log(spark, table)
        listed = files.listStatus(log) if files.exists(log) else ()
        return any(COMMIT.match(found.getPath().getName()) and found.getLen() for found in listed)

    def _open_log(self, spark: SparkSession, table: Table) -> tuple[Any, Any]:
        """Delta's log of a table, as Hadoop has it: the file system and the path."""
        assert spark._jvm is not None
        log = spark._jvm.org.apache.hadoop.fs.Path(self.get_path(table), "_delta_log")
        return log.getFileSystem(spark._jsc.hadoopConfiguration()), log

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        return spark.read.format("delta").load(self.get_path(table))

    def read_canonical(self, spark: SparkSession, table: Table, finality: Finality) -> DataFrame:
        return select_canonical(self.read(spark, table), self.read(spark, Table.BLOCKS), finality)

    def find_end(self, spark: SparkSession) -> Offset | None:
        """How far all tables are whole."""
        return find_end(self.read(spark, Table.BLOCKS)) if self.exists(spark) else None

    def find_ends(self, spark: SparkSession, end: Offset | None) -> dict[Table, Offset | None]:
        """How far each table is, where a run was cut off after writing some of them."""
        cut_off = [table for table in Table if not self._ends_within(spark, table, end)]
        behind = [self._list_behind(spark, table, end) for table in cut_off]
        found = (
            reduce(DataFrame.unionByName, behind).groupBy("table").agg(compute_last_place()).collect() if behind else []
        )
        ends = {Table(row["table"]): parse_place(row["place"]) for row in found}
        return {table: ends.get(table, end) for table in Table}

    def _ends_within(self, spark: SparkSession, table: Table, end: Offset | None) -> bool:
        """Does its newest commit say so? One that is not ours says nothing, and then the rows must be asked."""
        files, log = self._open_log(spark, table)
        names = (found.getPath().getName() for found in files.listStatus(log))
        newest = max(name for name in names if JSON.match(name))
        if newest == CREATION:
            return True
        reached = read_version(read_text(spark, files, log, newest))
        return end is not None and reached is not None and reached <= compute_version(end)

    def _list_behind(self, spark: SparkSession, table: Table, end: Offset | None) -> DataFrame:
        rows = self.read(spark, table)
        behind = rows.filter(is_after(end)) if end else rows
        return behind.select("sequence", "number", "block_hash", sql.lit(table.value).alias("table"))

    def create(self, spark: SparkSession) -> None:
        """Make the tables that are not there yet, empty, over whatever a full disk left of them; `blocks` last."""
        for table in Table:
            if not self.exists(spark, table):
                files, log = self._open_log(spark, table)
                files.delete(log, True)
                spark.sql(self._describe(table))

    def _describe(self, table: Table) -> str:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in get_spark_schema(table))
        return (
            f"CREATE TABLE {self.get_name(table)} ({columns}) USING delta "
            f"CLUSTER BY ({', '.join(CLUSTERED_BY[table])}) "
            f"TBLPROPERTIES (delta.checkpointInterval = {COMMITS_PER_CHECKPOINT})"
        )

    def append(self, spark: SparkSession, table: Table, files: Sequence[TableFile], end: Offset) -> None:
        """Add files, all or none, up to a place."""
        if files:
            commit_files(spark, self.get_path(table), files, compute_version(end))

    def append_events(self, rows: DataFrame) -> None:
        """Events of blocks that are in the tables already."""
        rows.write.format("delta").mode("append").save(self.get_path(Table.EVENTS))

    def find_chain_id(self, spark: SparkSession) -> int | None:
        found = self.read(spark, Table.BLOCKS).select("chain_id").head()
        return found["chain_id"] if found else None


def find_end(rows: DataFrame) -> Offset | None:
    """The last step among the rows."""
    (found,) = rows.agg(compute_last_place()).collect()
    return parse_place(found["place"]) if found["place"] else None


def compute_version(end: Offset) -> int:
    return end.sequence << SEQUENCE_SHIFT | end.number


def read_text(spark: SparkSession, files: Any, folder: Any, name: str) -> str:  # noqa: ANN401 # the JVM's
    assert spark._jvm is not None
    stream = files.open(spark._jvm.org.apache.hadoop.fs.Path(folder, name))
    try:
        return str(spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def parse_place(place: Row) -> Offset:
    return Offset(place["sequence"], place["number"], bytes(place["block_hash"]))


def get_absolute(folder: str) -> str:
    """For whoever runs elsewhere than here."""
    return folder if "://" in folder else str(Path(folder).absolute())

"""Many small files into few large ones, ordered by block and address; then away with those nobody reads any more."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.schemas import Table


def compact(spark: SparkSession, tables: Tables, watch: Callable[[Table], None] = lambda table: None) -> dict[str, int]:
    """How many files each table has afterwards."""
    counts = {}
    for table in Table:
        spark.sql(f"OPTIMIZE {tables.get_name(table)}").collect()
        spark.sql(f"VACUUM {tables.get_name(table)}").collect()
        counts[table.value] = spark.sql(f"DESCRIBE DETAIL {tables.get_name(table)}").collect()[0]["numFiles"]
        watch(table)
    return counts

"""The data source `evm`: verified blocks as Spark reads them, in batches or as a stream.

    spark.read.format("evm").option("source", "http://127.0.0.1:8545").option("first", 100).option("last", 200).load()

Planning links all headers of the range and cuts it into segments, whose edges are hashes; a worker fetches its segment
and checks every block of it, so that what arrives in Spark was recomputed where it was read. `pipeline/options.py` says
what may be asked for.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.types import StructType

from proofcast.pipeline.io.failures import carried
from proofcast.pipeline.io.journal import JournalStream
from proofcast.pipeline.io.planning import plan_segments
from proofcast.pipeline.io.reading import RangeTask, read_task
from proofcast.pipeline.io.streams import RangeStream
from proofcast.pipeline.options import ReadOptions, parse_options
from proofcast.pipeline.pushdown import push_filter
from proofcast.pipeline.schemas import get_spark_schema


class EvmDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "evm"

    def schema(self) -> StructType:
        with carried():
            options = parse_options(self.options)
            return get_spark_schema(options.table, options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        with carried():
            return EvmReader(parse_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        with carried():
            options = parse_options(self.options)
            return JournalStream(options) if options.journal else RangeStream(options)


class EvmReader(DataSourceReader):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        for wanted in filters:
            pushed = push_filter(self._options, wanted)
            self._options = pushed or self._options
            if pushed is None:
                yield wanted

    def partitions(self) -> list[InputPartition]:
        with carried():
            return [InputPartition(RangeTask(segment)) for segment in plan_segments(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with carried():
            yield from read_task(partition.value, self._options)

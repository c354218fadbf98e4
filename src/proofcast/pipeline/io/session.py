"""Spark sessions with Delta Lake, set for streams of small batches, and with the data source `evm`."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from proofcast.pipeline.io.jvm import add_archive, build_settings
from proofcast.pipeline.io.source import EvmDataSource

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Where everything is on one machine, nobody else need reach it."""
STREAMING = "org.apache.spark.sql.execution.streaming"
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # A reader that takes filters fails every read without it.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    # Statistics of a plan cost more than these plans gain.
    "spark.sql.adaptive.enabled": "false",
    # Logs and offsets of a stream: without these each batch spends most of its time on them.
    "spark.sql.streaming.checkpointFileManagerClass": f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # A query of many tasks leaves room for one that is waited for.
    "spark.scheduler.mode": "FAIR",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def build_session(master: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session on `master`, ready to read `evm` and to write Delta tables."""
    # Workers must be this very Python: another one lacks our packages, or does not connect back.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("proofcast")
    network = LOOPBACK if master.startswith("local") else {}
    wanted = SETTINGS | network | build_settings(master) | dict(settings or {})
    for name, value in add_archive(wanted).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("FATAL")  # failures are told by us, in one sentence
    if not master.startswith("local"):
        ship_package(spark)
    register(spark)
    return spark


def ship_package(spark: SparkSession) -> None:
    """Send this very package to the executors; what it stands on must be installed there."""
    package = Path(__file__).parents[2]
    # In the session's own folder: executors fetch the file when they start, some of them late.
    folder = spark.sparkContext._temp_dir
    archive = shutil.make_archive(f"{folder}/proofcast", "zip", package.parent, package.name)
    spark.sparkContext.addPyFile(archive)


def register(spark: SparkSession) -> None:
    """Make `evm` known to a session of the user's own."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(EvmDataSource)

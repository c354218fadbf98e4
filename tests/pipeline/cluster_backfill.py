"""What `test_cluster.py` runs on a cluster: `MASTER SOURCE TABLES`; prints where an executor has the package from."""

import sys

import proofcast
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.session import build_session
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.backfill import backfill
from proofcast.testing.pipeline import QUICK_SETTINGS

LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

if __name__ == "__main__":
    master, source, folder = sys.argv[1:]
    spark = build_session(master, QUICK_SETTINGS | LOOPBACK)
    places = spark.sparkContext.parallelize([0, 1], 2).map(lambda _: proofcast.__file__).collect()
    print(*sorted(set(places)), sep="\n", flush=True)
    options = {"source": source, "first": "1", "blocks_per_partition": "2"}
    backfill(spark, Tables(f"{folder}/tables"), options, [get_own_abi()], f"{folder}/scratch")
    spark.stop()

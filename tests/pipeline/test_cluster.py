"""The same job on a cluster, a master and two workers on loopback, makes the same tables as in one process."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from proofcast.chain.io.recorded import write_blocks
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.jvm import OPTIONS
from proofcast.pipeline.io.tables import Tables
from proofcast.pipeline.jobs.backfill import backfill
from proofcast.pipeline.schemas import Table
from proofcast.testing.chain import ChainSimulator
from proofcast.testing.pipeline import QUICK_SETTINGS

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
WORKERS = 2


@contextmanager
def run_daemon(name: str, *arguments: str, ready: str, folder: Path) -> Iterator[str]:
    """A process of Spark's, from the moment it says that it is ready until the end of the `with`; what it said then."""
    command = [SPARK_CLASS, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0", *arguments]
    variables = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_SETTINGS[OPTIONS],
        "SPARK_LOG_DIR": str(folder),
    }
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables, cwd=folder) as process:
        assert process.stderr
        try:
            said = ""
            for line in process.stderr:
                said += line
                found = re.search(ready, line)
                if found:
                    yield found.group()
                    return
            pytest.fail(f"{name} ended: {said}")
        finally:
            process.terminate()


@contextmanager
def run_cluster(folder: Path) -> Iterator[str]:
    with ExitStack() as daemons:
        address = daemons.enter_context(
            run_daemon("master.Master", "--port", "0", ready=r"spark://127\.0\.0\.1:\d+", folder=folder)
        )
        for number in range(WORKERS):
            place = folder / f"worker{number}"
            place.mkdir()
            options = ["--cores", "1", "--memory", "600m", "--work-dir", str(place), address]
            daemons.enter_context(
                run_daemon("worker.Worker", *options, ready="Successfully registered with master", folder=place)
            )
        yield address


def test_cluster_makes_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    chain = ChainSimulator(8)
    chain.mine(8)
    source = tmp_path / "recorded"
    write_blocks(source, chain.chain_id, [block.raw for block in chain.canonical[1:]])
    job = Path(__file__).parent / "cluster_backfill.py"
    with run_cluster(tmp_path) as address:
        command = [sys.executable, job, address, source, tmp_path / "cluster"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert all(".zip" in place for place in answer.stdout.split()), answer.stdout

    here = Tables(str(tmp_path / "here"))
    options = {"source": str(source), "first": "1"}
    backfill(spark, here, options, [get_own_abi()], str(tmp_path / "scratch"))
    there = Tables(str(tmp_path / "cluster" / "tables"))
    for table in (Table.LOGS, Table.RECEIPTS, Table.TRANSACTIONS, Table.BLOCKS):
        rows = here.read(spark, table), there.read(spark, table)
        assert rows[0].count() == rows[1].count() > 0
        assert rows[0].exceptAll(rows[1]).count() == 0, table

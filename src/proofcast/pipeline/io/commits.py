"""Files into a Delta table by Delta's own transaction, in the JVM: there is no public call for files of others."""

import json
from collections.abc import Sequence

from pyspark.sql import SparkSession

from proofcast.pipeline.io.files import TableFile

WRITER = "proofcast"
"""Whose transactions Delta counts."""
WRITE_DETAILS = 8
"""What Delta's history may say of a write besides that it appends."""


def commit_files(spark: SparkSession, path: str, files: Sequence[TableFile], version: int) -> None:
    """Add them, all or none; the version says in Delta's log how far the table is then.

    It is not asked for here: Delta would compute its whole state to answer, and the sink knows where its tables end.
    """
    assert spark._jvm is not None
    delta, scala = spark._jvm.org.apache.spark.sql.delta, spark._jvm.scala
    transaction = delta.DeltaLog.forTable(spark._jsparkSession, path).startTransaction()
    actions = spark._jvm.java.util.ArrayList()
    for action in ({"txn": {"appId": WRITER, "version": version}}, *map(describe_file, files)):
        actions.add(delta.actions.Action.fromJson(json.dumps(action)))
    # Called a write like Spark's own: after any other operation Delta computes its whole state anew.
    append, unsaid = spark._jvm.org.apache.spark.sql.SaveMode.Append, scala.Option.empty()
    operation = getattr(delta, "DeltaOperations$Write")(append, *[unsaid] * WRITE_DETAILS)
    transaction.commit(scala.jdk.javaapi.CollectionConverters.asScala(actions).toSeq(), operation)


def read_version(commit: str) -> int | None:
    """That a commit of ours carries; None of one that somebody else made."""
    transactions = (action["txn"] for action in map(json.loads, commit.splitlines()) if "txn" in action)
    return next((int(one["version"]) for one in transactions if one["appId"] == WRITER), None)


def describe_file(file: TableFile) -> dict[str, object]:
    """As Delta's protocol has it."""
    facts = {"path": file.path, "size": file.bytes, "modificationTime": file.modified_ms, "stats": file.statistics}
    return {"add": facts | {"partitionValues": {}, "dataChange": True}}

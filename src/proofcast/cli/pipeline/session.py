"""A Spark session for the length of a command; what Spark itself says goes into a file."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from proofcast.cli.connection import get_state_folder
from proofcast.cli.pipeline.request import Request
from proofcast.errors import InvalidRequest, Reason
from proofcast.pipeline.io.failures import spoken
from proofcast.pipeline.io.jvm import OPTIONS
from proofcast.pipeline.io.session import build_session

MEMORY = "spark.driver.memory"
ENOUGH = "2g"
"""For the default batch with room for Delta's own; `--conf` changes it."""


@contextmanager
def open_session(request: Request, memory: str = ENOUGH) -> Iterator[tuple[SparkSession, str]]:
    """The session, and a folder for what it need not remember.

    The heap has its full size from the beginning: one that grows for minutes cannot be told from a leak.
    """
    settings = {MEMORY: memory, **dict(map(parse_setting, request.settings))}
    settings = {OPTIONS: f"-Xms{settings[MEMORY]}", **settings}
    with spoken(), tempfile.TemporaryDirectory(prefix="proofcast-", ignore_cleanup_errors=True) as scratch:
        with quiet(get_state_folder() / "spark.log"):
            spark = build_session(request.master, settings)
        try:
            yield spark, scratch
        finally:
            spark.stop()


def parse_setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, f"`{text}` is no setting of Spark", hint="write e.g. `spark.driver.memory=4g`"
        )
    return name, value


@contextmanager
def quiet(log: Path) -> Iterator[None]:
    """Let processes started meanwhile write their stderr to a file: Java and Spark greet at length."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("w") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)

"""One Spark session for all tests of the pipeline: starting one takes longer than most of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from proofcast.pipeline.io.session import build_session
from proofcast.testing.pipeline import QUICK_SETTINGS


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = str(tmp_path_factory.mktemp("spark"))
    session = build_session("local[2]", QUICK_SETTINGS | {"spark.local.dir": folder, "spark.sql.warehouse.dir": folder})
    yield session
    session.stop()


@pytest.fixture
def scratch(tmp_path: Path) -> str:
    """For what a stream need not remember."""
    return str(tmp_path / "scratch")

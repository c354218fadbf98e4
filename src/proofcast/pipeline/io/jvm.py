"""What Spark's JVM is started with: Delta Lake, and classes that were loaded once and need not be parsed again."""

import os
from collections.abc import Mapping
from pathlib import Path

JARS_VARIABLE = "PROOFCAST_JARS"
CHECKOUT_JARS = Path(__file__).parents[4] / ".setup" / "jars"
"""Where `make` puts them."""
DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
"""What Spark fetches by itself where there are no jars; the version of pom.xml."""
ARCHIVE = "classes.jsa"
"""Beside the jars: made by `tools/spark-archive`, it saves a starting session nearly half of its CPU time."""
OPTIONS = "spark.driver.extraJavaOptions"


def build_settings(master: str) -> dict[str, str]:
    """Where to find Delta Lake. The archive holds only what came by the class path, which executors elsewhere lack."""
    jars = find_jars()
    if not jars:
        return {"spark.jars.packages": DELTA_PACKAGE}
    if not master.startswith("local"):
        return {"spark.jars": ",".join(map(str, jars))}
    return {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}


def add_archive(settings: Mapping[str, str]) -> dict[str, str]:
    """A JVM that finds the archive made by another one, or for other jars, goes on without it and in silence."""
    archive = find_folder() / ARCHIVE
    if not archive.exists():
        return dict(settings)
    wanted = [settings.get(OPTIONS, ""), f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable"]
    return {**settings, OPTIONS: " ".join(filter(None, wanted))}


def find_jars() -> list[Path]:
    return sorted(find_folder().glob("*.jar"))


def find_folder() -> Path:
    named = os.environ.get(JARS_VARIABLE)
    return Path(named) if named else CHECKOUT_JARS

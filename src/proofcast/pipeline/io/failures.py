"""Errors on their way through Spark, which keeps nothing of an exception but its text.

What our code raises in a worker is written into the text as one line of JSON, and read out of it again on the other
side, so that a user sees the sentence and not Spark's pages around it.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it carries no types
from pyspark.errors import PySparkException

from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Reason, Unavailable

MARK = re.compile(r'proofcast-refusal (\{".*\})')
CLASSES: dict[str, type[InvalidRequest | InvalidInput | Unavailable]] = {
    kind.__name__: kind for kind in (InvalidRequest, InvalidInput, Unavailable)
}
AGAIN = "the same command goes on where it stopped"
TELLTALES = (
    (
        r"No space left on device|database or disk is full",
        Reason.NOT_STORED,
        "no space is left on the disk",
        f"free some; {AGAIN}",
    ),
    (
        r"JAVA_GATEWAY_EXITED|Unable to locate a Java|java: not found|JAVA_HOME is not set",
        Reason.TOOL_MISSING,
        "Spark needs Java 17 and does not start",
        "`proofcast doctor` says what is missing",
    ),
    (
        r"All masters are unresponsive|Invalid Spark URL|Could not parse Master URL|CANNOT_PARSE_MASTER",
        Reason.NO_ANSWER,
        "no Spark master answers",
        "check `--master`, e.g. `local[2]`",
    ),
    (
        r"Python worker failed to connect back",
        Reason.NO_ANSWER,
        "a Python worker of Spark did not start in time",
        f"the machine is busy; {AGAIN}",
    ),
)
"""Words in Spark's failures, and what they mean to a user."""


class CarriedError(RuntimeError):
    """One of ours, as text."""


@contextmanager
def carried() -> Iterator[None]:
    """Around whatever runs in a worker of Spark."""
    try:
        yield
    except ProofcastError as error:
        kind = next(name for name, known in CLASSES.items() if isinstance(error, known))
        said = {"kind": kind, "reason": error.reason, "message": str(error), "hint": error.hint}
        raise CarriedError(f"proofcast-refusal {json.dumps(said)}") from error


@contextmanager
def spoken() -> Iterator[None]:
    """Around whatever calls Spark: a refusal made in a worker is raised here as itself."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = find_refusal(str(error))
        if found is None:
            raise
        raise found from error


def find_refusal(text: str) -> ProofcastError | None:
    """What the user should be told, where the text of a failure says it."""
    carried_text = MARK.search(text)
    if carried_text:
        said = json.loads(carried_text[1])
        return CLASSES[said["kind"]](Reason(said["reason"]), said["message"], hint=said["hint"])
    for words, reason, message, hint in TELLTALES:
        if re.search(words, text):
            return Unavailable(reason, message, hint=hint)
    return None

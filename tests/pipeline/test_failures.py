"""A refusal made in a worker of Spark reaches the user as the sentence that it was."""

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from proofcast.errors import InvalidInput, Misbehaviour, Reason, Unavailable
from proofcast.pipeline.io.failures import CarriedError, carried, find_refusal, spoken
from proofcast.pipeline.io.lock import held


def test_refusal_survives_as_text() -> None:
    with pytest.raises(CarriedError) as text, carried():
        raise Misbehaviour(Reason.DISAGREES, "block `7` is `x`\nnot `y`", hint="ask another", evidence=b"")
    around = f'raise CarriedError(f"proofcast-refusal {{json.dumps(said)}}")\n{text.value}\nat org.apache.spark...'
    for failure in (PySparkException(around), Py4JError(around)):
        with pytest.raises(InvalidInput, match="block `7` is `x`") as refusal, spoken():
            raise failure
        assert (refusal.value.reason, refusal.value.hint) == (Reason.DISAGREES, "ask another")


def test_full_disk_is_one_sentence() -> None:
    refusal = find_refusal("java.io.IOException: No space left on device\n at sun.nio.ch")
    assert isinstance(refusal, Unavailable)
    assert str(refusal) == "no space is left on the disk"


@pytest.mark.parametrize("failure", [ZeroDivisionError(), PySparkException("unknown"), Py4JError("unknown")])
def test_other_failures_stay_what_they_are(failure: Exception) -> None:
    with pytest.raises(type(failure)), spoken():
        raise failure


def test_second_writer_is_refused(tmp_path: object) -> None:
    with held(str(tmp_path)), pytest.raises(Exception, match="another process writes"), held(str(tmp_path)):
        pass
    with held(str(tmp_path)):
        pass

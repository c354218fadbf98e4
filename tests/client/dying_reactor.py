"""The example `monitor_and_react`, dying at the named stage as if the power had failed; run by `test_processes.py`."""

import os
import runpy
import sys
from pathlib import Path

from proofcast.onchain.io import sender
from proofcast.onchain.io.sender import Stage

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "monitor_and_react.py"
DIED = 3


class DyingSender(sender.Sender):
    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments, watch=die)  # type: ignore[arg-type]


def die(stage: Stage, transaction_hash: bytes) -> None:
    if stage == os.environ["FATAL"]:
        os._exit(DIED)


example = runpy.run_path(str(EXAMPLE))
example["main"].__globals__["Sender"] = DyingSender
example["main"](*sys.argv[1:])

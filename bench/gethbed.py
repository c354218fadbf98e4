"""go-ethereum's receipt code as a yardstick, built from the Go module proxy, on the same blocks and the same core."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofcast.cli import doctor
from proofcast.ethereum.block import encode_recorded
from proofcast.testing.ethereum import Recorded, read_recorded

SOURCE = Path(__file__).parent / "geth"
FIRST, LAST = 17_686_110, 17_686_132
"""A run of mainnet blocks of July 2023, 133 to 343 receipts each."""
REPEATS = 10
"""Times the blocks are gone through in one measurement, so that the collector's share is in it."""


@dataclass(frozen=True, slots=True)
class GethTimes:
    """CPU microseconds per block."""

    root: float
    root_and_bloom: float


@dataclass(frozen=True, slots=True)
class GethBed:
    program: Path
    files: Sequence[Path]

    def measure(self) -> GethTimes:
        command = [self.program, str(REPEATS), *self.files]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        return GethTimes(**json.loads(answer.stdout))


def read_run() -> list[Recorded]:
    """The blocks everything here is measured on."""
    folder = doctor.find_data()
    if folder is None:
        sys.exit(f"error: there are no recorded blocks\nhint: {doctor.check_data().remedy}")
    return [block for block in read_recorded(folder / "blocks") if FIRST <= block.header.number <= LAST]


@contextmanager
def open_geth_bed(blocks: Sequence[Recorded]) -> Iterator[GethBed]:
    with tempfile.TemporaryDirectory(prefix="proofcast-geth-") as name:
        folder = Path(name)
        files = [folder / f"{block.header.number}.rlp" for block in blocks]
        for file, block in zip(files, blocks, strict=True):
            file.write_bytes(encode_recorded(block.raw))
        yield GethBed(build_program(folder / "geth"), files)


def build_program(target: Path) -> Path:
    go = shutil.which("go")
    if go is None:
        sys.exit("error: `go` is missing, so there is nothing to compare with\nhint: install Go 1.25 or newer")
    print("building go-ethereum's receipt code", file=sys.stderr)
    subprocess.run([go, "build", "-mod=readonly", "-o", target, "."], cwd=SOURCE, check=True)
    return target

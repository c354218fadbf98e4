"""What the commands that read a chain share: options, ABIs, a bar that shows how far it is."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from proofcast.cli.output import note
from proofcast.cli.pipeline.request import ReadRequest
from proofcast.pipeline.decoding import Abi
from proofcast.pipeline.io.abis import get_own_abi, load_abi
from proofcast.pipeline.io.sink import Watch
from proofcast.pipeline.offsets import Offset


def load_abis(files: Sequence[Path]) -> list[Abi]:
    """Our own contracts' events always, and those the user names."""
    return [get_own_abi(), *map(load_abi, files)]


def get_read_options(request: ReadRequest) -> dict[str, str]:
    named = {"source": request.source, "first": request.first, "chain_id": request.chain_id, "trust": request.trust}
    return {name: str(value) for name, value in named.items() if value is not None}


@contextmanager
def progress(start: int, last: int) -> Iterator[Watch]:
    """A bar with rate and time left; being stopped says how to go on."""
    began, done = time.monotonic(), start

    def show(end: Offset | None) -> str:
        return f"{(done - start) / (time.monotonic() - began):.0f} blocks/s, at {done}"

    bar = click.progressbar(
        length=max(last - start, 1), label="blocks", show_pos=True, show_eta=True, item_show_func=show, file=sys.stderr
    )

    def watch(end: Offset) -> None:
        nonlocal done
        moved, done = end.number - done, end.number
        bar.update(moved, end)

    try:
        with bar:
            yield watch
    except KeyboardInterrupt:
        note(f"stopped after block {done}; the same command goes on from there")
        raise

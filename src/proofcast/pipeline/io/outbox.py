"""Logs out of Spark into the feed's outbox."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from proofcast.chain.trust import Trust
from proofcast.ethereum.receipt import Log
from proofcast.event import Position, Step
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.outbox import OutboxRow
from proofcast.pipeline.io.sink import Watch
from proofcast.pipeline.offsets import Offset
from proofcast.pipeline.schemas import TOPICS


class OutboxSink:
    """Writes the logs among the changes and how far it came, in one transaction; writing them again changes nothing."""

    def __init__(self, folder: Path, chain_id: int, watch: Watch) -> None:
        self._outbox, self._chain_id, self._watch = Outbox(folder), chain_id, watch

    @property
    def end(self) -> Offset:
        return Offset(self._outbox.get_sequence(), 0, b"")

    def write(self, batch: DataFrame, batch_id: int) -> None:
        changes = batch.toArrow().sort_by([("sequence", "ascending"), ("log_index", "ascending")]).to_pylist()
        if not changes:
            return
        rows = [build_row(change, self._chain_id) for change in changes if change["log_index"] is not None]
        last = changes[-1]
        self._outbox.write(rows, last["sequence"])
        self._watch(Offset(last["sequence"], last["number"], last["block_hash"]))


def build_row(change: pa.StructScalar, chain_id: int) -> OutboxRow:
    """Of one change, as Python has it."""
    topics = tuple(change[name] for name in TOPICS if change[name] is not None)
    return OutboxRow(
        change["sequence"],
        Step(change["step"]),
        Trust(change["trust"]),
        int(change["time"].timestamp()),
        Position(chain_id, change["number"], change["block_hash"], change["transaction_index"], change["log_index"]),
        None,
        Log(change["address"], topics, change["data"]),
    )

"""The matching engine, compiled where the kernel is built, else by its definition in Python."""

from proofcast.routing.boxes import Boxes, Engine, Integers, Matches, Rows
from proofcast.routing.definition import DefinedEngine

# Only mypy minds: it runs where the kernel is not built, too.
try:
    from proofcast_native import MatchingIndex  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError:
    MatchingIndex = None

IS_NATIVE = MatchingIndex is not None


class NativeEngine:
    """The compiled engine; other threads run while it works, and may add, remove and match at the same time."""

    def __init__(self) -> None:
        self._index = MatchingIndex()

    def __len__(self) -> int:
        return len(self._index)

    def add(self, boxes: Boxes) -> None:
        columns = (boxes.token_starts, boxes.tokens, boxes.range_starts, boxes.attributes, boxes.lows, boxes.highs)
        self._index.add(boxes.ids, *columns)

    def remove(self, ids: Integers) -> None:
        self._index.remove(ids)

    def match(self, rows: Rows) -> Matches:
        found = self._index.match_rows(rows.attributes, rows.lows, rows.highs, rows.token_starts, rows.tokens)
        starts, ids = (memoryview(column).cast("I") for column in found)
        return Matches(starts, ids)

    def get_memory_bytes(self) -> int:
        return int(self._index.memory_bytes())


def make_engine() -> Engine:
    return NativeEngine() if IS_NATIVE else DefinedEngine()

"""Other ways to match an event with many subscriptions, to compare the index with: each returns the ids in order."""

import sqlite3
from collections.abc import Callable

import numpy as np

from proofcast.routing.boxes import Boxes

Rival = Callable[[np.ndarray], list[int]]


def make_brute_force(boxes: Boxes, attributes: int) -> Rival:
    """Every range of every subscription, compared at once by NumPy."""
    owners = np.repeat(np.asarray(boxes.ids), np.diff(boxes.range_starts))

    def find(event: np.ndarray) -> list[int]:
        values = event[boxes.attributes]
        refused = np.zeros(len(boxes.ids), bool)
        refused[owners[(values < boxes.lows) | (boxes.highs < values)]] = True
        return np.flatnonzero(~refused).tolist()

    return find


def make_counting(boxes: Boxes, attributes: int) -> Rival:
    """The counting algorithm: per attribute the satisfied ranges, counted for each subscription.

    Of an attribute's ranges in order of their lower ends, those before the value's place are the candidates.
    """
    owners = np.repeat(np.asarray(boxes.ids), np.diff(boxes.range_starts))
    wanted = np.diff(boxes.range_starts)
    columns = []
    for attribute in range(attributes):
        mine = np.flatnonzero(np.asarray(boxes.attributes) == attribute)
        mine = mine[np.argsort(boxes.lows[mine])]
        columns.append((boxes.lows[mine], boxes.highs[mine], owners[mine]))

    def find(event: np.ndarray) -> list[int]:
        counts = np.zeros(len(boxes.ids), np.uint8)
        for value, (lows, highs, holders) in zip(event, columns, strict=True):
            begun = np.searchsorted(lows, value, side="right")
            counts[holders[:begun][highs[:begun] >= value]] += 1
        return np.flatnonzero(counts == wanted).tolist()

    return find


def make_sqlite(boxes: Boxes, attributes: int) -> Rival:
    """A table with two columns for each attribute, and a `WHERE` over all of them."""
    database = sqlite3.connect(":memory:")
    columns = ", ".join(f"low{attribute}, high{attribute}" for attribute in range(attributes))
    database.execute(f"CREATE TABLE subscription (id INTEGER PRIMARY KEY, {columns})")
    marks = ", ".join("?" * (2 * attributes + 1))
    for first in range(0, len(boxes.ids), 10_000):
        database.executemany(f"INSERT INTO subscription VALUES ({marks})", list_records(boxes, first, attributes))
    tests = " AND ".join(f"?{number + 1} BETWEEN low{number} AND high{number}" for number in range(attributes))
    query = f"SELECT id FROM subscription WHERE {tests} ORDER BY id"
    return lambda event: [identifier for (identifier,) in database.execute(query, event.tolist())]


def list_records(boxes: Boxes, first: int, attributes: int) -> list[list[float]]:
    """Rows of a part of the subscriptions; an attribute without range has all numbers between its ends."""
    last = min(first + 10_000, len(boxes.ids))
    records = np.tile(np.array([-np.inf, np.inf]), (last - first, attributes))
    part = slice(boxes.range_starts[first], boxes.range_starts[last])
    owners = np.repeat(np.arange(last - first), np.diff(boxes.range_starts[first : last + 1]))
    chosen = np.asarray(boxes.attributes[part], dtype=int)
    records[owners, 2 * chosen] = boxes.lows[part]
    records[owners, 2 * chosen + 1] = boxes.highs[part]
    return [[number, *record] for number, record in zip(boxes.ids[first:last].tolist(), records.tolist(), strict=True)]


RIVALS: dict[str, Callable[[Boxes, int], Rival]] = {
    "brute force (NumPy)": make_brute_force,
    "counting (NumPy)": make_counting,
    "SQLite": make_sqlite,
}

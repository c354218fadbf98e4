"""Real streams of events, and subscriptions around their values.

A subscription watches one to three of the stream's columns, each from somewhat below to somewhat above a value that
really occurred: narrow at random between a thousandth and a tenth of the column's spread. Where the stream has a word
(a stock's ticker, an airport), every second subscription demands one.
"""

import csv
import gzip
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from proofcast.routing.boxes import Boxes, Matches, Rows

Table = tuple[list[str], list[list[float]]]
"""A word of each event (empty where the stream has none), and its numbers."""
CHECKED = 50
"""Events of a stream that are checked by brute force."""


@dataclass(frozen=True, slots=True)
class Stream:
    boxes: Boxes
    rows: Rows

    def verify(self, found: Matches) -> None:
        """Compare some of the answers with brute force."""
        events = np.asarray(self.rows.lows).reshape(-1, len(self.rows.attributes))
        owners = np.repeat(np.asarray(self.boxes.ids), np.diff(self.boxes.range_starts))
        wanted = np.full(len(self.boxes.ids), -1)
        wanted[np.repeat(np.asarray(self.boxes.ids), np.diff(self.boxes.token_starts))] = self.boxes.tokens
        for place in np.linspace(0, len(events) - 1, CHECKED, dtype=int):
            values = events[place][self.boxes.attributes]
            carried = self.rows.tokens[self.rows.token_starts[place] : self.rows.token_starts[place + 1]]
            accepted = (wanted == -1) | np.isin(wanted, carried)
            accepted[owners[~((self.boxes.lows <= values) & (values <= self.boxes.highs))]] = False
            assert np.array_equal(np.sort(found.get_ids(place)), np.flatnonzero(accepted)), f"event {place} differs"


def open_stream(name: str, folder: Path, subscriptions: int, seed: int) -> Stream:
    words, numbers = STREAMS[name](folder)
    table, dice = np.array(numbers), np.random.default_rng(seed)
    known = {word: number for number, word in enumerate(sorted(set(words) - {""}))}
    tokens = np.array([known[word] for word in words if word], dtype=np.uint32)
    starts = np.concatenate([[0], np.cumsum([bool(word) for word in words])]).astype(np.uint32)
    attributes = np.arange(table.shape[1], dtype=np.uint32)
    rows = Rows(attributes, table.ravel(), np.zeros(0), starts, tokens)
    return Stream(make_boxes(table, len(known), subscriptions, dice), rows)


def make_boxes(table: np.ndarray, words: int, count: int, dice: np.random.Generator) -> Boxes:
    sizes = np.minimum(dice.integers(1, 4, count), table.shape[1])
    chosen = np.argsort(dice.random((count, table.shape[1])), axis=1)[:, :3]
    chosen = chosen[np.arange(chosen.shape[1]) < sizes[:, None]]
    spread = np.nanmax(table, axis=0) - np.nanmin(table, axis=0)
    middles = table[np.repeat(dice.integers(0, len(table), count), sizes), chosen]
    middles = np.where(np.isnan(middles), np.nanmean(table, axis=0)[chosen], middles)
    half = spread[chosen] * 10 ** dice.uniform(-3, -1, len(chosen)) / 2
    named = (dice.random(count) < 0.5) & (words > 0)
    return Boxes(
        np.arange(count, dtype=np.uint32),
        np.concatenate([[0], np.cumsum(named)]).astype(np.uint32),
        dice.integers(0, max(words, 1), named.sum(), dtype=np.uint32),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32),
        chosen.astype(np.uint32),
        middles - half,
        middles + half,
    )


def read_csv(path: Path) -> list[dict[str, str]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(csv.DictReader(io.StringIO(data.decode())))


def parse(text: str) -> float:
    """A number, a time in seconds, or not a number."""
    if text in ("", "NA"):
        return math.nan
    return datetime.fromisoformat(text).timestamp() if text.count("-") == 2 else float(text)


def read_table(path: Path, word: str | None, names: list[str]) -> Table:
    records = read_csv(path)
    words = [record[word] if word else "" for record in records]
    return words, [[parse(record[name]) for name in names] for record in records]


def read_stocks(folder: Path) -> Table:
    names = ["Date", "Open", "High", "Low", "Close", "Volume"]
    return read_table(folder / "bokeh_stocks.csv.gz", "Ticker", names)


def read_sea(folder: Path) -> Table:
    return read_table(folder / "bokeh_sea_surface_temperature.csv.gz", None, ["time (UTC)", "temperature (celsius)"])


def read_weather(folder: Path) -> Table:
    names = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib", "time_hour"]
    return read_table(folder / "nycflights13_weather.csv", "origin", names)


def read_shuttle(folder: Path) -> Table:
    return read_table(folder / "river_shuttle.csv.gz", None, [f"f{number}" for number in range(1, 10)])


def read_earthquakes(folder: Path) -> Table:
    features = json.loads((folder / "vega_earthquakes.json").read_text())["features"]
    records = [
        [feature["properties"]["mag"], feature["properties"]["time"], *feature["geometry"]["coordinates"]]
        for feature in features
    ]
    numbers = [[math.nan if number is None else float(number) for number in record] for record in records]
    return [feature["properties"]["net"] for feature in features], numbers


STREAMS: dict[str, Callable[[Path], Table]] = {
    "stock prices": read_stocks,
    "sea temperature": read_sea,
    "airport weather": read_weather,
    "shuttle telemetry": read_shuttle,
    "earthquakes": read_earthquakes,
}

"""The matching index: refusals, kernel against definition, the whole against brute force, changes while running."""

import math
import random
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofcast.errors import InvalidRequest
from proofcast.routing.attributes import EventAttributes, parse_attributes
from proofcast.routing.boxes import Boxes, Engine, Rows
from proofcast.routing.definition import DefinedEngine
from proofcast.routing.index import MatchingIndex
from proofcast.routing.kernel import IS_NATIVE, NativeEngine
from proofcast.routing.predicate import Predicate, matches, parse_predicate

needs_kernel = pytest.mark.needs("kernel")
ENGINES = [pytest.param(DefinedEngine, id="definition"), pytest.param(NativeEngine, id="kernel", marks=needs_kernel)]

Box = tuple[list[int], list[tuple[int, float, float]]]
"""Tokens, and ranges as (attribute, low, high)."""


def make_boxes(boxes: dict[int, Box]) -> Boxes:
    starts: tuple[array[int], array[int]] = (array("I", [0]), array("I", [0]))
    for tokens, ranges in boxes.values():
        starts[0].append(starts[0][-1] + len(tokens))
        starts[1].append(starts[1][-1] + len(ranges))
    ranges = [each for _, ranges in boxes.values() for each in ranges]
    return Boxes(
        array("I", boxes),
        starts[0],
        array("I", [token for tokens, _ in boxes.values() for token in tokens]),
        starts[1],
        array("I", [attribute for attribute, _, _ in ranges]),
        array("d", [low for _, low, _ in ranges]),
        array("d", [high for _, _, high in ranges]),
    )


def make_columns(ids: list[int], token_starts: list[int], tokens: list[int], range_starts: list[int]) -> Boxes:
    """Boxes without ranges, whether they fit or not."""
    integers = [array("I", column) for column in (ids, token_starts, tokens, range_starts)]
    return Boxes(*integers, array("I"), array("d"), array("d"))


def make_rows(events: list[tuple[list[int], list[tuple[float, float]]]], width: int) -> Rows:
    """Rows of `(tokens, [(low, high) of each attribute])`."""
    starts = array("I", [0])
    for tokens, _ in events:
        starts.append(starts[-1] + len(tokens))
    return Rows(
        array("I", range(width)),
        array("d", [low for _, values in events for low, _ in values]),
        array("d", [high for _, values in events for _, high in values]),
        starts,
        array("I", [token for tokens, _ in events for token in tokens]),
    )


# --- refusals


@pytest.mark.parametrize("make", ENGINES)
def test_taken_and_unknown_ids_are_refused_and_nothing_is_changed(make: Callable[[], Engine]) -> None:
    index = MatchingIndex(make())
    index.add(1, parse_predicate("surf T"))
    with pytest.raises(InvalidRequest, match="`1` is there already"):
        index.add_many({2: parse_predicate("surf T"), 1: parse_predicate("ski T")})
    with pytest.raises(InvalidRequest, match="`3` is not there"):
        index.remove_many([1, 3])
    with pytest.raises(InvalidRequest, match="`1` is not there"):
        index.remove_many([1, 1])
    with pytest.raises(InvalidRequest, match="`-1` is no id"):
        index.add(-1, parse_predicate("surf T"))
    assert index.match(parse_attributes("surf T/ski T")) == [1]


@needs_kernel
@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        (make_boxes({1: ([], [(0, 2.0, 1.0)])}), "a range is empty"),
        (make_boxes({1: ([], [(0, math.nan, 1.0)])}), "a range is empty"),
        (make_boxes({1: ([], [(65_535, 0.0, 1.0)])}), "too many attributes"),
        (make_boxes({1: ([], [(0, 0.0, 1.0)] * 256)}), "too many ranges"),
        (make_columns([1], [0], [], [0, 0]), "differ"),
        (make_columns([1], [0, 1], [], [0, 0]), "starts"),
        (make_columns([1], [], [], [0, 0]), "starts"),
    ],
)
def test_kernel_refuses_columns_that_do_not_fit(boxes: Boxes, message: str) -> None:
    engine = NativeEngine()
    with pytest.raises(ValueError, match=message):
        engine.add(boxes)
    assert len(engine) == 0


@needs_kernel
@pytest.mark.parametrize(
    "columns",
    [
        ([0], [1.0], [], [], []),
        ([0], [], [], [0, 0], []),
        ([0], [1.0], [1.0, 2.0], [0, 0], []),
        ([0], [1.0], [], [0, 2], [1]),
        ([0], [1.0], [], [0, 1, 0], []),
    ],
)
def test_kernel_refuses_rows_that_do_not_fit(columns: tuple[list[float], ...]) -> None:
    with pytest.raises(ValueError, match=r"start|missing"):
        NativeEngine().match(Rows(*(array(kind, numbers) for kind, numbers in zip("IddII", columns, strict=True))))


# --- engine and definition agree

ends = st.sampled_from([-math.inf, -1.5, 0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
ranges = st.tuples(st.integers(0, 3), ends, ends).map(lambda each: (each[0], min(each[1:]), max(each[1:])))
boxes_by_id = st.dictionaries(
    st.integers(0, 2**32 - 1),
    st.tuples(
        st.lists(st.integers(0, 3), unique=True, max_size=2),
        st.lists(ranges, unique_by=lambda each: each[0], max_size=4),
    ),
    max_size=40,
)
points = st.sampled_from([-1.5, -0.25, 0.0, 0.5, 0.75, 1.0, 2.0, 2.5, 3.0, math.nan])
values = st.one_of(
    points.map(lambda point: (point, point)),
    st.tuples(points, points).filter(lambda pair: pair[0] <= pair[1]),
)
rows = st.lists(
    st.tuples(st.lists(st.integers(0, 4), max_size=3), st.lists(values, min_size=4, max_size=4)), max_size=10
)


def find(engine: Engine, events: Rows) -> list[list[int]]:
    found = engine.match(events)
    return [sorted(found.get_ids(place)) for place in range(len(events.token_starts) - 1)]


@needs_kernel
@settings(max_examples=50)
@given(boxes_by_id, st.data())
def test_kernel_equals_definition(boxes: dict[int, Box], data: st.DataObject) -> None:
    kernel, definition = NativeEngine(), DefinedEngine()
    for engine in (kernel, definition):
        engine.add(make_boxes(boxes))
    events = make_rows(data.draw(rows), 4)
    assert find(kernel, events) == find(definition, events)
    gone = array("I", data.draw(st.lists(st.sampled_from(sorted(boxes)), unique=True)) if boxes else [])
    for engine in (kernel, definition):
        engine.remove(gone)
    assert find(kernel, events) == find(definition, events)
    assert len(kernel) == len(definition) == len(boxes) - len(gone)


def make_skewed_box(dice: random.Random) -> Box:
    """Tokens and attributes are rare or frequent, values crowd and depend on each other, widths differ widely."""
    tokens = {int(dice.paretovariate(1)) for _ in range(dice.choice([0, 0, 1, 2]))}
    middle, parts = dice.paretovariate(1), []
    for attribute in {min(int(dice.paretovariate(0.5)), 200) for _ in range(dice.randrange(6))}:
        width = 10 ** dice.uniform(-3, 1)
        parts.append((attribute, middle * attribute - width, middle * attribute + dice.choice([width, math.inf])))
    return sorted(tokens), parts


def make_skewed_event(dice: random.Random) -> tuple[list[int], list[tuple[float, float]]]:
    middle = dice.paretovariate(1)
    row = [middle * attribute + dice.gauss(0, 0.1) if dice.random() < 0.7 else math.nan for attribute in range(201)]
    return [int(dice.paretovariate(1)) for _ in range(3)], [(value, value + dice.choice([0, 0.01])) for value in row]


@needs_kernel
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_kernel_equals_definition_through_many_updates(seed: int) -> None:
    """Enough subscriptions to split, join and lay out chunks anew, skewed and correlated."""
    dice = random.Random(seed)
    kernel, definition = NativeEngine(), DefinedEngine()
    known: list[int] = []
    for step in range(12):
        fresh = {step * 10_000 + number: make_skewed_box(dice) for number in range(dice.choice([1, 40, 3000]))}
        known = dice.sample([*known, *fresh], len(known) + len(fresh))
        keep = dice.choice([len(known), len(known) // 2, len(known) // 10])
        gone, known = array("I", known[keep:]), known[:keep]
        events = make_rows([make_skewed_event(dice) for _ in range(20)], 201)
        for engine in (kernel, definition):
            engine.add(make_boxes(fresh))
            engine.remove(gone)
        assert find(kernel, events) == find(definition, events), f"seed {seed}, step {step}"
    kernel.remove(array("I", known))
    assert len(kernel) == 0
    assert find(kernel, events) == [[]] * 20


# --- the index and brute force agree

SMALL = ["0", "1", "1.5", "0.1", "0.1000000000000000000001", "0.0999999999999999999999"]
LARGE = ["9007199254740992", "9007199254740993", "12345678901234567890", "12345678901234567891"]
NAMES = ["a", "b", "c"]
numbers = st.sampled_from(SMALL + LARGE)
words = st.sampled_from(["red", "blue", "reddish"])
demands = st.one_of(
    st.just("T"),
    st.tuples(numbers, numbers).map(lambda pair: "R {} {}".format(*sorted(pair, key=Decimal))),
    numbers.map(lambda number: f"R * {number}"),
    numbers.map(lambda number: f"R {number} *"),
    st.lists(st.one_of(numbers, words), min_size=1, max_size=3).map(lambda members: f"S {' '.join(members)}"),
    words.map(lambda word: f"P {word[:3]}"),
    st.sampled_from(["R 2026-01-01 *", "R * 9999-12-31T23:59:59.999999Z", "R 9999-12-31T23:59:59.999998Z *"]),
)
predicates = st.dictionaries(
    st.sampled_from(NAMES), st.one_of(demands, demands.map(lambda demand: f"N {demand}")), min_size=1
).map(lambda parts: parse_predicate("/".join(f"{name} {demand}" for name, demand in parts.items())))
held = st.one_of(
    st.just("T"),
    numbers.map(lambda number: f"V {number}"),
    words.map(lambda word: f"V {word}"),
    st.tuples(numbers, numbers).map(lambda pair: "R {} {}".format(*sorted(pair, key=Decimal))),
    st.sampled_from(["V 2026-06-01", "V 9999-12-31T23:59:59.999998Z", "V 9999-12-31T23:59:59.999999Z"]),
)
events = st.dictionaries(st.sampled_from(NAMES), held).map(
    lambda parts: parse_attributes("/".join(f"{name} {value}" for name, value in parts.items()))
)


@pytest.mark.parametrize("make", ENGINES)
@settings(max_examples=60)
@given(wanted=st.lists(predicates, max_size=30), happened=st.lists(events, min_size=1, max_size=10))
def test_index_equals_brute_force(
    make: Callable[[], Engine], wanted: list[Predicate], happened: list[EventAttributes]
) -> None:
    index = MatchingIndex(make())
    index.add_many(dict(enumerate(wanted)))
    expected = [[number for number, each in enumerate(wanted) if matches(each, event)] for event in happened]
    assert index.match_many(happened) == expected


@pytest.mark.parametrize("make", ENGINES)
def test_subscriptions_change_while_running(make: Callable[[], Engine]) -> None:
    index, event = MatchingIndex(make()), parse_attributes("surf T/price V 5")
    index.add(7, parse_predicate("surf T/price N R 6 7"))
    assert index.match(event) == [7]
    index.add(3, parse_predicate("price R 5 5"))
    assert index.match(event) == [3, 7]
    index.remove(7)
    index.add(7, parse_predicate("price R 6 7"))
    assert index.match(event) == [3]
    assert len(index) == 2


@needs_kernel
def test_threads_match_and_change_at_the_same_time() -> None:
    """What nobody touches is found every time, whatever others add and remove meanwhile."""
    index, event = MatchingIndex(NativeEngine()), parse_attributes("price V 5")
    index.add_many({number: parse_predicate(f"price R 0 {number + 5}") for number in range(300)})
    churn = {number: parse_predicate("price R 5 5") for number in range(1000, 1200)}

    def change(_: int) -> None:
        index.add_many(churn)
        index.remove_many(churn)

    with ThreadPoolExecutor(4) as pool:
        finds = [pool.submit(index.match, event) for _ in range(200)]
        list(pool.map(change, range(1)))
        list(map(change, range(20)))
    assert all(found.result()[:300] == list(range(300)) for found in finds)
    assert index.match(event) == list(range(300))


def test_kernel_is_used_where_it_is_built() -> None:
    assert isinstance(MatchingIndex().engine, NativeEngine if IS_NATIVE else DefinedEngine)

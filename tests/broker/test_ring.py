"""The ring: whoever is in it goes on without gap or repeat, and what has left it is forgotten."""

from dataclasses import dataclass
from typing import cast

import pytest

from proofcast.broker.entry import Entry
from proofcast.broker.ring import Ring
from proofcast.chain.segment import BlockId
from proofcast.feed.view import WHOLE_BLOCK, View


@dataclass(frozen=True, slots=True)
class FakeEntry:
    """Of an entry, all that a ring looks at."""

    view: View


def make_view(number: int, log_index: int = WHOLE_BLOCK) -> View:
    return View(BlockId(number, number.to_bytes(32)), log_index)


def append_block(ring: Ring, number: int, logs: int) -> None:
    ring.append([cast("Entry", FakeEntry(make_view(number, at))) for at in range(logs)], make_view(number))


def test_place_is_found_while_what_follows_it_is_there() -> None:
    ring = Ring(make_view(0), capacity=4)
    append_block(ring, 1, 3)
    assert [ring.find_place(view) for view in (make_view(0), make_view(1, 0), make_view(1))] == [0, 1, 3]
    append_block(ring, 2, 3)
    assert ring.first == 2
    assert [ring.find_place(make_view(1, at)) for at in range(3)] == [None, 2, 3]
    assert [ring.find_place(make_view(number)) for number in range(3)] == [None, 3, 6]


def test_view_that_comes_again_is_found_where_it_came_last() -> None:
    ring = Ring(make_view(0), capacity=4)
    for number in (1, 2, 1, 2):
        append_block(ring, number, 1)
    assert [ring.find_place(make_view(number)) for number in (1, 2)] == [3, 4]
    append_block(ring, 3, 2)
    assert ring.find_place(make_view(1)) == 3


@pytest.mark.parametrize("logs", [0, 1])
def test_memory_is_bounded(logs: int) -> None:
    ring = Ring(make_view(0), capacity=4)
    for number in range(1, 1_000):
        append_block(ring, number, logs * (number % 3))
        assert len(ring._places) <= len(ring._noted) <= 8
    assert ring.find_place(make_view(999)) == ring.end

"""What a reader sees is the chain's own order, whichever broker answers."""

import random
from dataclasses import replace

import pytest

from proofcast.client.following import Following
from proofcast.cloudevents import Delivery
from proofcast.cursor import Cursor, encode_cursor
from proofcast.errors import InvalidInput
from proofcast.event import Event, Finality, Position, Step

FINALIZED = 10


def build(number: int, branch: int = 0, step: Step = Step.APPLY, finalized: int = FINALIZED) -> Delivery:
    """A block of one log each, on one of several branches."""
    position = Position(1, number, bytes([branch]) * 32, 0, 0)
    event = Event("eip155:1:0x00", bytes(32), 1, b"", b"", b"", 0, position, "linked", Finality.LATEST, step)
    held = step is Step.APPLY
    return Delivery(event, encode_cursor(Cursor(1, number, position.block_hash, 0, held, finalized, bytes(32))))


def read(following: Following, *deliveries: Delivery) -> list[tuple[str, int, int]]:
    events = [found.event for delivery in deliveries for found in following.receive(delivery)]
    return [(str(event.step), event.position.block_number, event.position.block_hash[0]) for event in events]


def test_broker_that_undoes_out_of_order_is_refused() -> None:
    following = Following()
    read(following, build(11), build(12))
    with pytest.raises(InvalidInput, match="undoes `log 0 of block 11"):
        read(following, build(11, step=Step.UNDO))


def test_what_comes_again_after_a_rewind_is_passed_over() -> None:
    following = Following()
    read(following, build(11), build(12))
    following.rewind(FINALIZED, "rewound")
    assert read(following, build(11), build(12), build(13)) == [("apply", 13, 0)]


def test_difference_after_a_rewind_is_undone_first() -> None:
    following = Following()
    read(following, build(11), build(12), build(13))
    following.rewind(FINALIZED, "rewound")
    assert read(following, build(11), build(12, branch=1)) == [("undo", 13, 0), ("undo", 12, 0), ("apply", 12, 1)]


def test_what_is_not_repeated_after_a_rewind_is_undone_at_the_end() -> None:
    following = Following()
    read(following, build(11), build(12))
    following.rewind(FINALIZED, "rewound")
    assert read(following, build(11)) == []
    assert [found.event.position.block_number for found in following.settle_doubts()] == [12]
    assert following.cursor == build(11).cursor


def test_rewind_cut_short_goes_on_from_what_was_confirmed() -> None:
    """The connection breaks in the middle: what is still in doubt stays in doubt for the next broker."""
    following = Following()
    read(following, build(11), build(12), build(13))
    following.rewind(FINALIZED, "rewound")
    read(following, build(11))
    assert following.resumption == build(11).cursor
    assert following.cursor == build(13).cursor
    assert read(following, build(12), build(13), build(14)) == [("apply", 14, 0)]


def test_only_what_may_be_undone_is_kept() -> None:
    following = Following()
    for number in range(11, 200):
        read(following, build(number, finalized=number - 2))
    assert len(following._held) <= 3


@pytest.mark.parametrize("seed", range(100))
def test_reader_ends_with_the_view_of_the_last_broker(seed: int) -> None:
    """Brokers on branches of their own, changed at random moments."""
    dice, following, held = random.Random(seed), Following(), []
    for _ in range(6):
        chain = [build(11 + at, branch=int(at >= dice.randrange(6)) * dice.randrange(3)) for at in range(5)]
        following.rewind(FINALIZED, "rewound")
        events = [event for one in chain[: dice.randrange(6)] for event in following.receive(one)]
    final = [build(11 + at, branch=7 * (at > 2)) for at in range(dice.randrange(6))]
    following.rewind(FINALIZED, "rewound")
    del events
    held = [one.event for one in (*following._held, *following._doubtful)]
    found = [found for one in final for found in following.receive(one)] + list(following.settle_doubts())
    for event in [one.event for one in found]:
        if event.step is Step.UNDO:
            assert replace(held.pop(), step=Step.UNDO) == event, seed
        else:
            held.append(event)
    assert held == [one.event for one in final], seed

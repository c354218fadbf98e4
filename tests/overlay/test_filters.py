"""Summaries only ever widen; windows never mistake a repetition for news."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from proofcast.overlay.filters import summarise
from proofcast.overlay.logs import Logs, compute_chain
from proofcast.overlay.records import Event, EventId
from proofcast.overlay.seen import Seen
from proofcast.overlay.settings import DIGEST_EVENTS_MAX, LOG_EVENTS_MAX, SESSIONS_MAX, WINDOW_EVENTS
from proofcast.routing.attributes import EventAttributes, parse_attributes
from proofcast.routing.predicate import Predicate, matches, parse_predicate

WORDS = ("surf", "ski", "bali")


def draw_predicate(dice: random.Random) -> Predicate:
    words = [f"{word} T" for word in dice.sample(WORDS, dice.randint(1, 2))]
    for name in dice.sample(("price", "day"), dice.randint(0, 2)):
        low = dice.randint(0, 20)
        words.append(f"{name} R {low} {low + dice.randint(0, 10)}")
    return parse_predicate("/".join(words))


def draw_attributes(dice: random.Random) -> EventAttributes:
    words = [f"{word} T" for word in dice.sample(WORDS, dice.randint(1, 3))]
    words += [f"{name} V {dice.randint(0, 30)}" for name in dice.sample(("price", "day"), dice.randint(0, 2))]
    return parse_attributes("/".join(words))


@settings(max_examples=40)
@given(st.integers(0, 1 << 32), st.integers(1, 30), st.integers(1, 8))
def test_summary_lets_through_whatever_a_part_does(seed: int, count: int, limit: int) -> None:
    dice = random.Random(seed)
    parts = [draw_predicate(dice) for _ in range(count)]
    summary = summarise(parts, limit)
    assert len(summary.filters) <= limit
    for _ in range(20):
        event = draw_attributes(dice)
        if any(matches(part, event) for part in parts):
            assert summary.wants_all or any(matches(one, event) for one in summary.filters)


@settings(max_examples=40)
@given(st.integers(0, 1 << 32), st.integers(1, 20))
def test_summary_within_the_limit_is_exact(seed: int, count: int) -> None:
    dice = random.Random(seed)
    parts = [draw_predicate(dice) for _ in range(count)]
    summary = summarise(parts)
    for _ in range(20):
        event = draw_attributes(dice)
        wanted = any(matches(part, event) for part in parts)
        assert wanted == any(matches(one, event) for one in summary.filters)


def test_event_ids_do_not_collide() -> None:
    """P7: session 1 and sequence 23 are not session 12 and sequence 3."""
    seen = Seen()
    seen.add(EventId(b"p", 1, 23))
    assert EventId(b"p", 12, 3) not in seen
    assert EventId(b"p", 1, 23) in seen


@given(st.lists(st.integers(1, 3 * WINDOW_EVENTS), min_size=1, max_size=60))
def test_window_equals_a_set_within_its_reach(sequences: list[int]) -> None:
    seen, added = Seen(), set[int]()
    for sequence in sequences:
        event_id = EventId(b"p", 1, sequence)
        is_behind = bool(added) and max(added) - sequence >= WINDOW_EVENTS
        assert (event_id in seen) == (sequence in added or is_behind)
        if event_id not in seen:
            mark = seen.add(event_id)
            added.add(sequence)
            assert event_id in Seen((mark,)), "a stored mark says the same"


def test_sessions_are_bounded() -> None:
    seen = Seen()
    for session in range(SESSIONS_MAX + 10):
        seen.add(EventId(b"p", session, 1))
    assert EventId(b"p", 0, 1) not in seen
    assert EventId(b"p", SESSIONS_MAX + 9, 1) in seen


def make_event(sequence: int) -> Event:
    return Event(EventId(b"p", 1, sequence), 0, parse_attributes("surf T"), b"")


def test_log_is_bounded_in_number_and_age() -> None:
    logs = Logs(kept_s=10)
    for sequence in range(LOG_EVENTS_MAX + 5):
        logs.add(1, make_event(sequence), 0)
    assert logs.find(1, EventId(b"p", 1, 4)) is None
    logs.expire(10_001)
    assert logs.find(1, EventId(b"p", 1, 5)) is None


def test_digest_of_a_long_log_comes_in_pages() -> None:
    logs = Logs(kept_s=10)
    for sequence in range(DIGEST_EVENTS_MAX + 3):
        logs.add(1, make_event(sequence), sequence)
    first = logs.make_digest(1, [parse_predicate("surf T")], 0, 9_000)
    second = logs.make_digest(1, [parse_predicate("surf T")], first.until_ms, 9_000)
    assert (first.count, second.count, second.until_ms) == (DIGEST_EVENTS_MAX, 3, 9_000)
    assert first.chain == compute_chain(first.ids) != compute_chain(first.ids[:-1])
    assert logs.make_digest(1, [parse_predicate("ski T")], 0, 9_000).count == 0

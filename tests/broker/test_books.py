"""Exchanges and queues as they are now: what is undone has never been said."""

from hypothesis import given
from hypothesis import strategies as st

from proofcast.broker.books import Books, ExchangeBook, QueueBook
from proofcast.onchain.exchange_events import (
    BindingChanged,
    ExchangeCreated,
    ExchangeEvent,
    Expired,
    Handed,
    Held,
    PaidOut,
    QueueCreated,
    Routed,
    SubscriberChanged,
)
from proofcast.onchain.exchanges import Status
from proofcast.onchain.outcome import Outcome
from proofcast.onchain.queues import Condition, Header, QueueTerms

X, Q, A = b"\x11" * 32, b"\x11" * 31 + b"\x22", b"\xaa" * 20
TERMS = QueueTerms(condition=Condition.TIME)


def hold(number: int, value_wei: int = 5) -> Held:
    return Held(Q, number, Header(X, number, A, value_wei, number, 1, 0, 0))


def hand(number: int, first: int = 0, remaining: int = 0) -> Handed:
    return Handed(Q, number, X, number, first, remaining, (Outcome.DELIVERED,))


SAID: list[ExchangeEvent] = [
    ExchangeCreated(X, True, False, 0, "colours"),
    QueueCreated(Q, TERMS, "blue"),
    BindingChanged(X, Q, Status.REQUESTED, "a"),
    BindingChanged(X, Q, Status.APPROVED, "a"),
    BindingChanged(X, Q, Status.REMOVED, "a"),
    BindingChanged(X, Q, Status.APPROVED, "b"),
    SubscriberChanged(Q, A, Status.APPROVED),
    SubscriberChanged(Q, A, Status.REMOVED),
    Routed(X, 1, A, 0, 1, b"a", b""),
    *(hold(number) for number in (1, 2)),
    *(hand(number, first, remaining) for number in (1, 2, 3) for first, remaining in ((0, 0), (0, 1), (1, 0))),
    Expired(Q, 2, bytes(32)),
    PaidOut(A, A, 1),
]


def read(said: list[ExchangeEvent]) -> tuple[list[ExchangeBook], list[QueueBook]]:
    books = Books()
    for event in said:
        books.apply(event)
    return books.list_exchanges(), books.list_queues()


@given(st.lists(st.sampled_from(SAID)), st.lists(st.sampled_from(SAID)))
def test_what_is_undone_was_never_said(kept: list[ExchangeEvent], undone: list[ExchangeEvent]) -> None:
    books = Books()
    for event in [*kept, *undone]:
        books.apply(event)
    for event in reversed(undone):
        books.undo(event)
    assert (books.list_exchanges(), books.list_queues()) == read(kept)


def test_books_say_what_is_now() -> None:
    created, messages = SAID[:7], [SAID[8], hold(1), hold(2, 7), hand(1), hand(3, remaining=1), hand(3, 1)]
    exchanges, queues = read([*created, *messages])
    assert exchanges == [ExchangeBook(X, "colours", True, 1, ((Q, "b"),))]
    assert queues == [QueueBook(Q, "blue", Condition.TIME, 3, 1, 1, 7)]
    assert read([*created, *messages, Expired(Q, 2, bytes(32))])[1][0].held == 0

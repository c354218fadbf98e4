"""Durable subscriptions over a feed that lives through reorgs, the same tests on SQLite and PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import psycopg
import pytest

from proofcast.broker.io.deliveries import Deliveries
from proofcast.broker.io.hub import Hub
from proofcast.broker.io.store.durable import Store
from proofcast.broker.io.store.letters import Attempt
from proofcast.broker.scope import Scope
from proofcast.broker.selection import Selection
from proofcast.broker.start import AtBlock, Oldest
from proofcast.broker.subscription import Pending, Status, Terms, Transport
from proofcast.cloudevents import parse_structured
from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Reason, Unavailable
from proofcast.event import Finality, Step
from proofcast.testing.broker.postgres import PostgresServer
from proofcast.testing.feed.story import START, LogName, Story

RAW = Terms(selection=Selection(contract=bytes(20)))
"""The raw logs that a story has."""
NOTHING = Terms(selection=Selection(contract=b"\7" * 20))


@asynccontextmanager
async def open_store(folder: Path, address: str) -> AsyncIterator[Deliveries]:
    hub, store = Hub(folder, b"\1" * 20), Store(address)
    try:
        yield Deliveries(hub, store)
    finally:
        await store.close()


async def create(deliveries: Deliveries, name: str = "flights", terms: Terms = RAW) -> None:
    await deliveries.store.create(name, terms, deliveries.find_place(Oldest(), terms.finality))


def list_moves(pending: Sequence[Pending]) -> list[tuple[Step, LogName]]:
    return [(one.step, one.log) for one in pending]


def perform(held: list[LogName], pending: Sequence[Pending]) -> None:
    """What a subscriber does; one that is marked may be there already."""
    for one in pending:
        if one.step is Step.UNDO:
            assert held.pop() == one.log
        else:
            held.append(one.log)


# --- refusals


def test_taken_name_is_refused(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries)
            with pytest.raises(InvalidRequest) as refused:
                await create(deliveries)
            assert refused.value.reason is Reason.ALREADY_EXISTS

    asyncio.run(scenario())


def test_unknown_name_is_refused(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_store(tmp_path, store_address) as deliveries:
            for refused in (
                deliveries.store.get("nobody"),
                deliveries.store.delete("nobody"),
                deliveries.store.pause("nobody"),
                deliveries.hold("nobody"),
                deliveries.store.redrive("nobody"),
            ):
                with pytest.raises(InvalidRequest) as error:
                    await refused
                assert error.value.reason is Reason.UNKNOWN_SUBSCRIPTION

    asyncio.run(scenario())


def test_refusal_concerns_only_the_one_who_earned_it(tmp_path: Path, store_address: str) -> None:
    """Asked for at one moment, so written in one group."""

    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_store(tmp_path, store_address) as deliveries:
            names = ["a", "b", "a", "c"]
            outcomes = await asyncio.gather(*(create(deliveries, name) for name in names), return_exceptions=True)
            assert [type(one) for one in outcomes] == [type(None), type(None), InvalidRequest, type(None)]
            assert [one.name for one in await deliveries.store.find_all()] == ["a", "b", "c"]

    asyncio.run(scenario())


def test_cursor_that_was_not_delivered_is_no_acknowledgement(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log()])])
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries)
            beyond = deliveries.find_place(AtBlock(START.number + 2), Finality.LATEST)
            with pytest.raises(InvalidRequest) as refused:
                await deliveries.store.acknowledge_up_to("flights", beyond)
            assert refused.value.reason is Reason.NOT_PENDING

    asyncio.run(scenario())


def test_store_of_a_newer_broker_is_refused(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        store = Store(store_address)
        await store.run(lambda at: at.change("UPDATE schema_version SET version = 99"))
        await store.close()
        with pytest.raises(InvalidRequest, match="version 99"):
            await Store(store_address).find_all()

    asyncio.run(scenario())


@pytest.mark.needs("postgres")
def test_lost_connection_is_made_again(postgres_server: PostgresServer) -> None:
    async def scenario() -> None:
        address = postgres_server.create_database()
        store = Store(address)
        assert await store.find_all() == []
        with psycopg.connect(address) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid()")
        with pytest.raises(Unavailable) as refused:
            await store.find_all()
        assert refused.value.reason is Reason.NOT_STORED
        assert await store.find_all() == []
        await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("address", ["postgresql://nobody:secret@127.0.0.1:9/x", "postgresql://nobody:secret@[bad/x"])
def test_database_that_does_not_answer_is_named_without_its_password(address: str) -> None:
    async def scenario() -> None:
        with pytest.raises(ProofcastError) as refused:
            await Store(address).find_all()
        assert "secret" not in f"{refused.value} {refused.value.hint}"

    asyncio.run(scenario())


# --- delivery


def test_unacknowledged_deliveries_are_repeated_and_marked(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        block = story.make_block(START, [story.make_log() for _ in range(3)])
        story.adopt([block])
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries)
            first = await deliveries.read(await deliveries.hold("flights"), 10)
            assert list_moves(first) == [(Step.APPLY, (block.hash, index)) for index in range(3)]
            assert not any(one.is_repeated for one in first)
            assert await deliveries.store.acknowledge_up_to("flights", first[0].cursor) == 1
        async with open_store(tmp_path, store_address) as deliveries:  # as after a crash
            deliveries.store.owner = "another life"
            await deliveries.store.run(lambda at: at.change("UPDATE subscription SET held_until = 0"))
            found = await deliveries.store.get("flights")
            assert (found.cursor, found.pending, found.acknowledged) == (first[0].cursor, 2, 1)
            again = await deliveries.read(await deliveries.hold("flights"), 10)
            assert [one.log for one in again] == [one.log for one in first[1:]]
            assert all(orjson.loads(one.encode())["repeated"] == "true" for one in again)
            assert await deliveries.store.acknowledge_up_to("flights", again[-1].cursor) == 2
            assert await deliveries.store.acknowledge_up_to("flights", again[-1].cursor) == 0

    asyncio.run(scenario())


def test_changed_selection_still_undoes_what_was_delivered(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        old = story.make_block(START, [story.make_log(), story.make_log()])
        story.adopt([old])
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries)
            first = await deliveries.read(await deliveries.hold("flights"), 10)
            await deliveries.store.acknowledge_up_to("flights", first[-1].cursor)
            before = await deliveries.store.get("flights")
            changed = await deliveries.store.change("flights", NOTHING)
            assert (changed.cursor, changed.place, changed.generation) == (before.cursor, before.place, 2)
            story.adopt([story.make_block(START, [story.make_log()])])
            undone = await deliveries.read(await deliveries.hold("flights"), 10)
            assert list_moves(undone) == [(Step.UNDO, (old.hash, 1)), (Step.UNDO, (old.hash, 0))]

    asyncio.run(scenario())


def test_undo_of_what_was_never_delivered_is_not_delivered(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log()])])
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries, terms=NOTHING)
            holding = await deliveries.hold("flights")
            assert await deliveries.read(holding, 10) == []
            await deliveries.store.change("flights", RAW)
            new = story.make_block(START, [story.make_log()])
            story.adopt([new])
            holding = await deliveries.hold("flights")
            assert list_moves(await deliveries.read(holding, 10)) == [(Step.APPLY, (new.hash, 0))]

    asyncio.run(scenario())


def test_finalized_subscription_waits(tmp_path: Path, store_address: str) -> None:
    """Flaw O1: nothing is delivered before it is final, and nothing of it is kept for an undo."""

    async def scenario() -> None:
        story = Story(tmp_path, 1)
        block = story.make_block(START, [story.make_log()])
        story.adopt([block])
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries, terms=Terms(RAW.selection, Finality.FINALIZED))
            holding = await deliveries.hold("flights")
            assert await deliveries.read(holding, 10) == []
            story.finalize(block.id)
            assert list_moves(await deliveries.read(holding, 10)) == [(Step.APPLY, (block.hash, 0))]
            assert await deliveries.store.find_given("flights", [(block.hash, 0)]) == set()

    asyncio.run(scenario())


def test_rewound_subscription_gets_everything_again_and_marked(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        one = story.make_block(START, [story.make_log()])
        two = story.make_block(one.id, [story.make_log()])
        story.adopt([one, two])
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries)
            await deliveries.read(await deliveries.hold("flights"), 10)
            await deliveries.rewind("flights", AtBlock(two.number))
            three = story.make_block(two.id, [story.make_log()])
            story.adopt([three])
            again = await deliveries.read(await deliveries.hold("flights"), 10)
            assert [(found.log[0], found.is_repeated) for found in again] == [(two.hash, True), (three.hash, False)]

    asyncio.run(scenario())


# --- who delivers


def test_old_holder_is_fenced_off(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log()])])
        async with open_store(tmp_path, store_address) as one, open_store(tmp_path, store_address) as two:
            await create(one)
            old = await one.hold("flights")
            pending = await one.read(old, 10)
            with pytest.raises(Unavailable) as refused:
                await two.hold("flights")
            assert refused.value.reason is Reason.HELD_ELSEWHERE
            await one.store.run(lambda at: at.change("UPDATE subscription SET held_until = 0"))  # its lease has run out
            new = await two.hold("flights")
            assert new.fence > old.fence
            for write in (
                one.store.acknowledge(old, [pending[0].ordinal]),
                one.store.offer(old, [], old.subscription.place, 0),
                one.store.postpone(old, pending[0].ordinal, 1, 0.0),
                one.store.bury(old, pending[0].ordinal, "x"),
            ):
                with pytest.raises(InvalidRequest) as fenced:
                    await write
                assert fenced.value.reason is Reason.FENCED
            assert [found.is_repeated for found in await two.read(new, 10)] == [True]
            assert await one.store.renew([old]) == {}
            assert await two.store.renew([new]) == {"flights": 1}

    asyncio.run(scenario())


def test_free_subscriptions_are_those_somebody_must_push(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_store(tmp_path, store_address) as one, open_store(tmp_path, store_address) as two:
            for name, transport in (("a", Transport.WEBHOOK), ("b", Transport.PULL), ("c", Transport.WEBHOOK)):
                await create(one, name, Terms(RAW.selection, transport=transport))
            await one.store.pause("c")
            assert await two.store.find_free([Transport.WEBHOOK]) == ["a"]
            holding = await one.hold("a")
            assert await two.store.find_free([Transport.WEBHOOK]) == []
            await one.release(holding)
            assert await two.store.find_free([Transport.WEBHOOK]) == ["a"]
            await one.store.resume("c")
            assert await two.store.find_free([Transport.WEBHOOK]) == ["a", "c"]
            assert [found.name for found in await two.store.find_all(status=Status.ACTIVE, transport="pull")] == ["b"]

    asyncio.run(scenario())


# --- dead letters


def test_redriving_an_undone_event_delivers_nothing(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        old = story.make_block(START, [story.make_log(), story.make_log(), story.make_log()])
        story.adopt([old])
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries)
            store, holding = deliveries.store, await deliveries.hold("flights")
            late, early, arrived = await deliveries.read(holding, 10)
            await store.acknowledge(holding, [arrived.ordinal])
            await store.bury(holding, early.ordinal, "the receiver answered 500")
            new = story.make_block(START, [story.make_log()])
            story.adopt([new])
            following = await deliveries.extend(holding, 10)
            assert [one.step for one in following] == [Step.UNDO] * 3 + [Step.APPLY]
            await store.bury(holding, late.ordinal, "the receiver answered 500")
            assert [one.is_undone for one in await store.read_dead("flights")] == [True, True]
            redriven = await store.redrive("flights")
            assert (redriven.ordinals, redriven.undone) == ((), 2)
            assert await store.read_dead("flights") == []
            await store.bury(holding, following[-1].ordinal, "the receiver answered 500")
            redriven = await store.redrive("flights")
            assert (len(redriven.ordinals), redriven.undone) == (1, 0)
            (again,) = await store.read_pending("flights", following[-1].ordinal)
            assert (again.log, again.is_repeated) == ((new.hash, 0), True)

    asyncio.run(scenario())


def test_newest_attempts_are_kept(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries)
            made = [Attempt(ordinal, 0, "id", "acknowledge", "taken", 0.0) for ordinal in range(1, 1_501)]
            await deliveries.store.record("flights", made)
            page = await deliveries.store.read_attempts("flights", 10**9, 3)
            assert [one.ordinal for one in page] == [1_500, 1_499, 1_498]
            assert len(await deliveries.store.read_attempts("flights", 10**9, 5_000)) == 1_001
            await deliveries.store.delete("flights")
            assert await deliveries.store.run(lambda at: at.read("SELECT count(*) FROM attempt")) == [(0,)]

    asyncio.run(scenario())


# --- backup


def test_backup_moves_everything_to_another_store(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        story = Story(tmp_path, 1)
        story.adopt([story.make_block(START, [story.make_log(), story.make_log()])])
        secret = Terms(RAW.selection, transport=Transport.WEBHOOK, secrets=("whsec_x",), options={"url": "x"})
        async with open_store(tmp_path, store_address) as deliveries:
            await create(deliveries, terms=secret)
            await deliveries.read(await deliveries.hold("flights"), 10)
            before = await deliveries.store.get("flights")
            await deliveries.store.back_up(tmp_path / "backup")
            with pytest.raises(InvalidRequest, match="not empty"):
                await deliveries.store.restore(tmp_path / "backup")
        assert (tmp_path / "backup").stat().st_mode & 0o077 == 0
        async with open_store(tmp_path, str(tmp_path / "other.sqlite")) as deliveries:
            await deliveries.store.restore(tmp_path / "backup")
            assert await deliveries.store.get("flights") == before
            again = await deliveries.read(await deliveries.hold("flights"), 10)
            assert [one.is_repeated for one in again] == [True, True]
            await deliveries.store.back_up(tmp_path / "again")

    asyncio.run(scenario())


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-9], lambda data: b"{}" + data])
def test_damaged_backup_restores_nothing(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(str(tmp_path / "one.sqlite"))
        await store.add_key("id", b"digest", "label", Scope.READ, 0)
        await store.back_up(tmp_path / "backup")
        await store.close()
        (tmp_path / "damaged").write_bytes(damage((tmp_path / "backup").read_bytes()))
        other = Store(str(tmp_path / "two.sqlite"))
        with pytest.raises(InvalidInput):
            await other.restore(tmp_path / "damaged")
        assert await other.find_keys() == []
        await other.close()

    asyncio.run(scenario())


def test_history_read_during_append(tmp_path: Path) -> None:
    """Flaw O6: whoever reads while another process writes sees whole states only."""

    async def scenario() -> None:
        story = Story(tmp_path, 1)
        async with open_store(tmp_path, str(tmp_path / "broker.sqlite")) as deliveries:
            await create(deliveries)
            writing = asyncio.get_running_loop().run_in_executor(None, lambda: [story.grow() for _ in range(40)])
            held: list[LogName] = []
            holding = await deliveries.hold("flights")
            while not writing.done() or held != story.list_logs(Finality.LATEST):
                pending = await deliveries.extend(holding, 7)
                perform(held, pending)
                await deliveries.store.acknowledge(holding, [one.ordinal for one in pending])

    asyncio.run(scenario())


def test_another_broker_takes_over_from_a_branch_it_never_saw(tmp_path: Path, store_address: str) -> None:
    """Two feeds, one store: what was given of the orphan is undone from the store, once it is certain."""

    async def scenario() -> None:
        one, two = Story(tmp_path / "one", 1), Story(tmp_path / "two", 2)
        common = one.make_block(START, [one.make_log()])
        two.logs[common.hash] = one.logs[common.hash]
        orphan = one.make_block(common.id, [one.make_log(), one.make_log()])
        for story in (one, two):
            story.adopt([common])
        one.adopt([orphan])
        held: list[LogName] = []
        async with open_store(tmp_path / "one", store_address) as deliveries:
            await create(deliveries)
            holding = await deliveries.hold("flights")
            pending = await deliveries.read(holding, 10)
            perform(held, pending)
            await deliveries.store.acknowledge(holding, [found.ordinal for found in pending])
            await deliveries.release(holding)
        other = two.make_block(common.id, [two.make_log()])
        two.adopt([other])
        async with open_store(tmp_path / "two", store_address) as deliveries:
            with pytest.raises(InvalidRequest, match="never seen"):
                await deliveries.read(await deliveries.hold("flights"), 10)
            two.finalize(other.id)
            holding = await deliveries.hold("flights")
            undone = await deliveries.read(holding, 10)
            assert list_moves(undone) == [(Step.UNDO, (orphan.hash, 1)), (Step.UNDO, (orphan.hash, 0))]
            assert all(parse_structured(found.body).event.step is Step.UNDO for found in undone)
            perform(held, undone)
            perform(held, await deliveries.extend(holding, 10))
            assert held == two.list_logs(Finality.LATEST)

    asyncio.run(scenario())

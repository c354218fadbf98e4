"""The store: every method is one transaction, committed together with whatever else is asked for at that moment."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from uuid import uuid4

from proofcast.broker.io.store import keys, letters, offers, subscriptions
from proofcast.broker.io.store.backup import read_backup, write_backup
from proofcast.broker.io.store.commit import Committer, Result
from proofcast.broker.io.store.database import Transaction, open_database
from proofcast.broker.io.store.keys import ApiKey
from proofcast.broker.io.store.letters import Attempt, DeadLetter, Redriven
from proofcast.broker.io.store.offers import Given, Offered
from proofcast.broker.io.store.subscriptions import LEASE_S, Holding
from proofcast.broker.scope import Scope
from proofcast.broker.subscription import LogName, Pending, Status, Subscription, Terms, Transport


class Store:
    def __init__(self, address: str, lease_s: float = LEASE_S) -> None:
        self.lease_s = lease_s
        self._database = open_database(address)
        self._committer = Committer(self._database)
        self.owner = str(uuid4())
        """Tells this broker from others on the same database, and from its own past life."""

    async def run(self, operation: Callable[[Transaction], Result]) -> Result:
        return await self._committer.run(operation)

    async def claim(self) -> None:
        """Where no other broker is on the store, whoever held something is dead: nobody has to wait for a lease."""
        await self.find_all(limit=1)
        if self._database.is_alone():
            await self.run(lambda at: at.change("UPDATE subscription SET held_until = 0"))

    async def close(self) -> None:
        await self._committer.close()

    async def back_up(self, path: Path) -> int:
        """Everything in one file, as it is at one moment; how many rows."""
        return await self.run(lambda at: write_backup(at, path))

    async def restore(self, path: Path) -> int:
        return await self.run(lambda at: read_backup(at, path))

    # --- subscriptions

    async def create(self, name: str, terms: Terms, place: str) -> Subscription:
        return await self.run(partial(subscriptions.create, name=name, terms=terms, place=place))

    async def create_once(
        self, name: str, terms: Terms, place: str, key: str, digest: bytes
    ) -> tuple[Subscription, bool]:
        """Create, once for all requests with the same idempotency key; says whether it is new."""
        return await self.run(lambda at: subscriptions.create_once(at, name, terms, place, key, digest))

    async def get(self, name: str) -> Subscription:
        return await self.run(lambda at: subscriptions.get(at, name))

    async def find_all(
        self, after: str = "", limit: int = 1_000, transport: str = "", status: str = ""
    ) -> list[Subscription]:
        """By name."""
        return await self.run(lambda at: subscriptions.find_all(at, after, limit, transport, status))

    async def change(self, name: str, terms: Terms) -> Subscription:
        """Other terms; place, cursor and what is pending stay."""
        return await self.run(lambda at: subscriptions.change_terms(at, name, terms))

    async def pause(self, name: str) -> Subscription:
        return await self.run(lambda at: subscriptions.set_status(at, name, Status.PAUSED))

    async def resume(self, name: str) -> Subscription:
        return await self.run(lambda at: subscriptions.set_status(at, name, Status.ACTIVE))

    async def disable(self, name: str, reason: str) -> Subscription:
        return await self.run(lambda at: subscriptions.set_status(at, name, Status.DISABLED, reason))

    async def rewind(self, name: str, place: str, number: int, log_index: int, former: tuple[int, int]) -> Subscription:
        return await self.run(lambda at: subscriptions.rewind(at, name, place, number, log_index, former))

    async def delete(self, name: str) -> None:
        await self.run(lambda at: subscriptions.delete(at, name))

    # --- who delivers

    async def hold(self, name: str) -> Holding:
        """The right to deliver; within one broker the newest holder wins, the former one is fenced off."""
        return await self.run(lambda at: subscriptions.hold(at, name, self.owner, self.lease_s))

    async def renew(self, holdings: Sequence[Holding]) -> dict[str, int]:
        return await self.run(lambda at: subscriptions.renew(at, self.owner, self.lease_s, holdings))

    async def release(self, holding: Holding) -> None:
        await self.run(lambda at: subscriptions.release(at, holding))

    async def find_free(self, transports: Sequence[Transport]) -> list[str]:
        return await self.run(lambda at: subscriptions.find_free(at, transports))

    # --- deliveries

    async def find_given(self, name: str, logs: Sequence[LogName]) -> set[LogName]:
        return await self.run(lambda at: offers.find_given(at, name, logs)) if logs else set()

    async def read_given(self, name: str) -> list[Given]:
        return await self.run(lambda at: offers.read_given(at, name))

    async def offer(self, holding: Holding, offered: Sequence[Offered], place: str, settled: int) -> list[Pending]:
        return await self.run(lambda at: offers.offer(at, holding, offered, place, settled))

    async def read_pending(self, name: str, after_ordinal: int = -1, limit: int = 1_000) -> list[Pending]:
        return await self.run(lambda at: offers.read_pending(at, name, after_ordinal, limit))

    async def acknowledge(self, holding: Holding, ordinals: Sequence[int]) -> None:
        await self.run(lambda at: offers.acknowledge(at, holding, ordinals))

    async def acknowledge_up_to(self, name: str, cursor: str) -> int:
        return await self.run(lambda at: offers.acknowledge_up_to(at, name, cursor))

    async def postpone(self, holding: Holding, ordinal: int, attempts: int, due_at: float) -> None:
        await self.run(lambda at: letters.postpone(at, holding, ordinal, attempts, due_at))

    async def bury(self, holding: Holding, ordinal: int, reason: str) -> None:
        await self.run(lambda at: letters.bury(at, holding, ordinal, reason))

    async def record(self, name: str, attempts: Sequence[Attempt]) -> None:
        await self.run(lambda at: letters.record(at, name, attempts))

    async def read_attempts(self, name: str, before: int, limit: int) -> list[Attempt]:
        return await self.run(lambda at: letters.read_attempts(at, name, before, limit))

    async def read_dead(self, name: str, after: int = -1, limit: int = 1_000) -> list[DeadLetter]:
        return await self.run(lambda at: letters.read_dead(at, name, after, limit))

    async def redrive(self, name: str, ordinals: Sequence[int] | None = None) -> Redriven:
        """Dead letters are pending again, all or those named; what the chain took back is dropped."""
        return await self.run(lambda at: letters.redrive(at, name, ordinals))

    # --- keys

    async def add_key(self, key_id: str, digest: bytes, label: str, scope: Scope, rate_per_s: int) -> ApiKey:
        return await self.run(lambda at: keys.add(at, key_id, digest, label, scope, rate_per_s))

    async def find_keys(self) -> list[ApiKey]:
        return await self.run(keys.find_all)

    async def revoke_key(self, key_id: str) -> None:
        await self.run(lambda at: keys.revoke(at, key_id))

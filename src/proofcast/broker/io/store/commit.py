"""Group commit: whatever was asked for while the disk was busy is written in one transaction.

Operations are functions of a transaction that may be run again. Where one of a group fails, the group is undone and
each is run alone, so that a refusal concerns the one who earned it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from proofcast.broker.io.store.database import PostgresDatabase, SqliteDatabase, Transaction

GROUP_MAX = 512
"""Operations in one transaction: more would delay the first of them."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Asked:
    operation: Callable[[Transaction], Any]
    answer: "asyncio.Future[Any]"


class Committer:
    """One thread that writes; everybody else waits for it without blocking."""

    def __init__(self, database: SqliteDatabase | PostgresDatabase) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(1, "store")
        self._asked: list[Asked] = []
        self._busy: asyncio.Task[None] | None = None

    async def run(self, operation: Callable[[Transaction], Result]) -> Result:
        """What the operation returns, once it is on disk."""
        asked = Asked(operation, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        if self._busy is None or self._busy.done():
            self._busy = asyncio.create_task(self._write())
        result: Result = await asked.answer
        return result

    async def close(self) -> None:
        if self._busy is not None:
            await asyncio.gather(self._busy, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.close)
        self._thread.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._asked:
            group, self._asked = self._asked[:GROUP_MAX], self._asked[GROUP_MAX:]
            outcomes = await loop.run_in_executor(self._thread, self._commit, [one.operation for one in group])
            for one, outcome in zip(group, outcomes, strict=True):
                if one.answer.done():
                    continue  # whoever asked has gone
                if isinstance(outcome, BaseException):
                    one.answer.set_exception(outcome)
                else:
                    one.answer.set_result(outcome)

    def _commit(self, operations: list[Callable[[Transaction], Any]]) -> list[Any]:
        try:
            with self._database.transaction() as transaction:
                return [operation(transaction) for operation in operations]
        except Exception as error:  # handed to whoever asked
            return [error] if len(operations) == 1 else [self._commit([one])[0] for one in operations]
